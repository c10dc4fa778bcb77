"""Configurations: sources of values, errors in one line, and no API keys."""

from pathlib import Path
from typing import Any

import pytest

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import (
    EvalConfig,
    OpenAI,
    Scripted,
    Transformers,
    parse_config,
    read_config,
    read_prices,
)
from kevin_env.app.evaluate.search import Beam, Parallel, Serial, Shape
from kevin_env.settings import Settings

WHOLE = """
problem = ["L1", "held_out", "kernelbench:level1/23"]
samples = 16
concurrency = 32
requests_per_minute = 60
baselines = ["eager", "compile"]

[settings]
max_turns = 8
gamma = 0.8
stop_on = 2.0
device = "cuda:1"

[policy]
kind = "openai"
model = "m"
base_url = "http://localhost:8000/v1"
temperature = 0.9
extra_body = {top_k = 20, nested = {quoted = "a \\"b\\"\\n\\u00e9", flag = true, numbers = [1, 2.5]}}

[search]
kind = "beam"
keep = 4
rounds = 2

[prices]
prompt = 1.25
completion = 10
"""
LEAST: dict[str, Any] = {"problem": "L1_23_Softmax", "policy": {"model": "m"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "eval.toml"
    path.write_text(WHOLE)
    return path


def test_a_file_is_read(file: Path) -> None:
    config = read_config(file)
    assert config.problem == ("L1", "held_out", "kernelbench:level1/23")
    assert config.settings == Settings(
        max_turns=8, gamma=0.8, stop_on=2.0, device="cuda:1", baseline="eager"
    )
    assert config.search == Beam(kind="beam", keep=4, rounds=2)
    assert isinstance(config.policy, OpenAI)
    nested = {"quoted": 'a "b"\né', "flag": True, "numbers": [1, 2.5]}
    assert config.policy.extra_body == {"top_k": 20, "nested": nested}
    assert config.prices is not None and config.prices.completion == 10


def test_little_is_needed() -> None:
    config = parse_config(LEAST)
    assert config == EvalConfig(problem=("L1_23_Softmax",), policy=OpenAI(model="m"))
    assert (config.samples, config.settings, config.search) == (
        1,
        Settings(baseline="eager"),
        Serial(),
    )
    assert (config.baselines, config.prices, config.requests_per_minute) == (("eager",), None, None)


def test_overrides_go_before_flags_and_flags_before_the_file(file: Path) -> None:
    flags = {"samples": 4, "policy.model": "by flag", "settings.device": None, "problem": "L1,L2"}
    overrides = (
        "samples=2 search.keep=1 policy.base_url=http://a:1/v1 settings.hints=true "
        "policy.extra_body.top_k=5 settings.stop_on=correct"
    )
    config = read_config(file, overrides.split(), flags)
    assert (config.samples, config.problem) == (2, ("L1", "L2"))
    assert isinstance(config.policy, OpenAI)
    assert (config.policy.model, config.policy.base_url) == ("by flag", "http://a:1/v1")
    assert config.policy.extra_body is not None and config.policy.extra_body["top_k"] == 5
    assert config.settings.device == "cuda:1"
    assert (config.settings.hints, config.settings.stop_on) == (True, "correct")


def test_what_is_kept_gives_the_same_again(file: Path, tmp_path: Path) -> None:
    config = read_config(file, flags={"out": str(tmp_path / "run")})
    kept = tmp_path / "config.toml"
    kept.write_text(config.toml())
    assert read_config(kept) == config.model_copy(update={"out": None})


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"model": "local:models/tiny"}, Transformers(kind="transformers", model="models/tiny")),
        ({"kind": "scripted", "replies": "/a"}, Scripted(kind="scripted", replies=Path("/a"))),
    ],
)
def test_the_model_tells_what_kind_of_policy_it_is(policy: dict[str, Any], kind: Any) -> None:
    assert parse_config(LEAST | {"policy": policy, "concurrency": 1}).policy == kind


def test_relative_paths_mean_the_same_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policy = {"kind": "scripted", "replies": "replies"}
    config = parse_config(LEAST | {"policy": policy, "out": "run"})
    assert isinstance(config.policy, Scripted)
    assert (config.policy.replies, config.out) == (tmp_path / "replies", tmp_path / "run")


def test_searches_have_shapes() -> None:
    assert Serial().shape(4, 8) == Shape(4, 8)
    assert Parallel(kind="parallel").shape(4, 8) == Shape(32, 1)
    assert Beam(kind="beam").shape(16, 8) == Shape(16, 8, 2, 4)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sampels": 4}, r"unknown key sampels; did you mean samples\? Known keys: baselines, "),
        (
            {"settings": {"max_turn": 4}},
            r"settings.max_turn; .* Known keys of settings: .* gamma, ",
        ),
        (
            {"search": {"kind": "beam", "width": 4}},
            r"search.width; .* keys of search: keep, kind, r",
        ),
        ({"search": {"width": 4}}, r"unknown key search.width; known keys of search: kind"),
        ({"policy": {"model": "m", "temprature": 1}}, r"policy.temprature; did you mean temper"),
        ({"policy": {"model": "m", "api_key": "k"}}, r"policy.api_key; .*; API keys are read from"),
        ({"prices": {"promt": 1, "completion": 1}}, r"unknown key prices.promt"),
        ({"policy": {}}, "policy.model is missing"),
        ({"policy": {"kind": "oracle"}}, "policy: .*'oracle'.*'openai'"),
        ({"search": {"kind": "tree"}}, "search.*: .*'tree'.*'serial'"),
        ({"problem": []}, "problem = .*: .*at least 1"),
        ({"samples": 0}, "samples = 0: .*greater than or equal to 1"),
        ({"samples": "many"}, "samples = 'many': .*integer"),
        ({"settings": {"device": "gpu"}}, "settings.device = 'gpu'"),
        ({"baselines": "compile"}, r"eager is required; write \[\"eager\", \"compile\"\]"),
        ({"baselines": "tensorrt"}, "baselines.*'eager' or 'compile'"),
        (
            {"samples": 2, "search": {"kind": "beam"}},
            "search.keep = 4: must not exceed samples, 2",
        ),
        (
            {"samples": 4, "search": {"kind": "beam", "rounds": 3}},
            "search.rounds = 3: settings.max_turns = 4 is not a multiple",
        ),
        ({"requests_per_minute": 0}, "requests_per_minute = 0"),
        ({"requests_per_minute": float("inf")}, "requests_per_minute"),
        ({"out": 5}, "out = 5"),
        ({"settings": 3}, "settings = 3"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_key(values: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        parse_config(LEAST | values)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("samples", "write -o key=value"),
        ("=3", "write -o key=value"),
        ("samples.a=3", "samples.a: samples is not a table"),
        ("policy.model=1.5", "policy.model: .*string"),
        ("samples=4\nproblem=3", "samples = .*integer"),
    ],
)
def test_overrides_that_cannot_be(file: Path, override: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_config(file, [override])


def test_a_file_that_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("samples = = 3")
    with pytest.raises(BadInput, match=r"broken\.toml: .*line 1"):
        read_config(broken)


SECRET = "sk-proj-0123456789abcdef"


@pytest.mark.parametrize(
    "policy",
    [
        {"base_url": f"https://user:{SECRET}@host/v1"},
        {"extra_body": {"api_key": SECRET}},
        {"extra_body": {"headers": {"Authorization": f"Bearer {SECRET}"}}},
        {"extra_body": {"user": f"me {SECRET}"}},
        {"base_url": f"https://host/v1?key={SECRET}"},
        {"model": SECRET},
    ],
)
def test_no_key_gets_into_a_configuration(
    policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(BadInput, match="use OPENAI_API_KEY instead") as caught:
        parse_config(LEAST | {"policy": {"model": "m"} | policy})
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_names_that_only_look_like_secrets_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    more = {"reasoning_tokens": "EMPTY"}
    body = {"max_tokens": 5, "stop_token_ids": [1], "chat_template_kwargs": more}
    assert parse_config(LEAST | {"policy": {"model": "m", "extra_body": body}})


def test_prices_alone_can_be_read(file: Path) -> None:
    prices = read_prices(file, ["prices.prompt=2"])
    assert prices is not None and (prices.prompt, prices.completion) == (2, 10)
    assert read_prices(None) is None
    with pytest.raises(BadInput, match="only prices can be set"):
        read_prices(file, ["samples=3"])
    with pytest.raises(BadInput, match="prices: completion is missing"):
        read_prices(None, ["prices.prompt=2"])
