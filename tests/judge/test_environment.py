"""What a judge gets of its client's environment, and what its answers do not repeat."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kevin_env
from kevin_env.judge.api import Options, Submission
from kevin_env.judge.environment import redacted, without_secrets
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, ProblemError

KEYS = {
    "OPENAI_API_KEY": "sk-of-a-model", "KEVIN_ENV_JUDGE_TOKEN": "token-of-a-judge",
    "HF_TOKEN": "hf-of-a-hub", "AWS_SECRET_ACCESS_KEY": "of-a-cloud", "DB_PASSWORD": "of-a-database",
    "WANDB_API_KEY": "of-a-logger", "GOOGLE_CREDENTIALS": "of-an-account",
}  # fmt: skip
SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs(): return [torch.randn(4)]
def get_init_inputs(): return []
"""
TELLS = "import os\nraise RuntimeError(' '.join(os.environ))\n"


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with pytest.MonkeyPatch.context() as changed:
        for name, value in KEYS.items():
            changed.setenv(name, value)
        with LocalPool() as pool:
            yield pool


def test_a_judge_has_no_keys(pool: LocalPool) -> None:
    """References run in it."""
    problem = Problem(id="tells", name="tells", source=TELLS + SOURCE)
    with pytest.raises(ProblemError) as told:
        pool.describe(problem, Options(device="cpu")).result()
    assert "PATH" in str(told.value) and not [name for name in KEYS if name in str(told.value)]


def test_an_outcome_and_its_log_repeat_no_key(pool: LocalPool) -> None:
    everything = " ".join(KEYS.values())
    code = f"print('{everything}')\nraise RuntimeError('{everything}')\nclass ModelNew: pass\n"
    problem = Problem(id="adds", name="adds", source=SOURCE)
    judged = pool.submit(problem, Submission(code=code), Options(device="cpu")).result()
    said = judged.model_dump_json()
    assert not [value for value in KEYS.values() if value in said]
    names = " ".join(f"[{name}]" for name in KEYS)
    assert names in judged.outcome.message and names in judged.log


def test_what_is_no_key_is_left() -> None:
    kept = {"PATH": "/usr/bin", "TOKENIZERS_PARALLELISM": "false", "KEYBOARD": "qwertz-or-so"}
    assert without_secrets(kept | {"A_TOKEN": "12345678"}) == kept
    text = {"a": ["qwertz-or-so", 1, None, "no EMPTY key"]}
    assert redacted(text, kept | {"OPENAI_API_KEY": "EMPTY"}) == text


@pytest.mark.parametrize(
    ("given", "expected"),
    [(":/a", "/a"), ("/a:", "/a"), ("x:/a:.", "/a"), ("", None), (".", None), ("/a:/b", "/a:/b")],
)
def test_no_relative_import_path_reaches_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, expected: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_secrets({"PYTHONPATH": given}).get("PYTHONPATH") == expected


def test_a_checkout_that_is_not_installed_stays_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    package = str(Path(kevin_env.__file__).parents[1])
    monkeypatch.chdir(package)
    assert without_secrets({"PYTHONPATH": ":/a"})["PYTHONPATH"] == f"{package}:/a"
