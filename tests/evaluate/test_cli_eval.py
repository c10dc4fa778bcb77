"""The command `kevin-env eval`."""

import json
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from evaluations import by_number, coded, values_of
from stub_server import Answer, delta, serve, usage
from trajectories import RIGHT, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app import arguments
from kevin_env.app.evaluate.board import Board, progress_text
from kevin_env.app.evaluate.config import read_config
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.search import Shape
from kevin_env.cli import app
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import ProblemRef

KEY = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scripted judge instead of this machine's, and no endpoint."""

    @contextmanager
    def open_pool(device: str, pool: str | None) -> Iterator[ScriptedPool]:
        with closing(ScriptedPool(by_number)) as opened:
            yield opened

    monkeypatch.setattr(arguments, "open_pool", open_pool)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def call(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["eval", *map(str, words)])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def config_file(folder: Path, **more: Any) -> Path:
    values = values_of(folder, **more)
    del values["out"]
    path = folder / "eval.toml"
    path.write_text(tomli_w.dumps(values))
    return path


def reply(number: int) -> Answer:
    tokens = usage(prompt_tokens=100, completion_tokens=50, total_tokens=150)
    return Answer([delta(content=coded(number)), delta("stop"), tokens])


def test_from_a_file_to_figures(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, err = call(config_file(tmp_path), "--out", out)
    assert code == 0
    assert "3 problems" in said and "fast_1.5" in said and "pass@k" in said
    assert "18 of 18 turns" in err and "figures: " in err
    assert f"kevin-env replay {out}" in err and f"kevin-env report {out}" in err
    names = {"config.toml", "trajectories.jsonl", "metrics.json", "summary.csv", ".lock"}
    assert {path.name for path in out.iterdir()} == names
    code, said, _ = call("--resume", out, "--json")
    assert code == 0
    assert json.loads(said) == json.loads((out / "metrics.json").read_text())


def test_against_an_endpoint_by_options_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = "--problem L1_23_Softmax --problem L1_40_LayerNorm --samples 2 --max-turns 1 --json"
    more = "-o prices.prompt=1 -o prices.completion=2 -o policy.temperature=0.7 --model m"
    words = [*words.split(), *more.split()]
    with serve(reply(4)) as stub:
        code, said, _ = call(*words, "--base-url", stub.url, "--out", out)
    assert code == 0
    assert [request["temperature"] for request in stub.requests] == [0.7] * 4
    totals = json.loads(said)["overall"]["totals"]
    assert (totals["prompt_tokens"], totals["completion_tokens"]) == (400, 200)
    assert totals["cost"] == pytest.approx(800e-6)
    kept = tomllib.loads((out / "config.toml").read_text())
    assert kept["problem"] == ["L1_23_Softmax", "L1_40_LayerNorm"]
    assert kept["policy"] == {
        "kind": "openai", "model": "m", "base_url": stub.url, "timeout": 600.0, "retries": 8, "temperature": 0.7
    }  # fmt: skip
    assert stub.keys == [f"Bearer {KEY}"] * 4 or set(stub.keys) == {KEY}
    assert not [path for path in out.iterdir() if KEY in path.read_text()]
    assert call("--resume", out, "--json")[:2] == (0, said), "nothing is left to ask the model"
    code, said, err = call("--resume", out, "--samples", "3")
    assert (code, said, "cannot reach" in err) == (1, "", True)
    assert tomllib.loads((out / "config.toml").read_text()) == kept


def test_what_is_kept_can_be_run_again_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "elsewhere"
    with serve(reply(4)) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        call("--model", "m", "--problem", "L1_23_Softmax", "--max-turns", "1", "--out", first)
        monkeypatch.delenv("OPENAI_BASE_URL")
        second.mkdir()
        monkeypatch.chdir(second)
        code, _, err = call(first / "config.toml")
    assert (code, len(stub.requests)) == (0, 2)
    (made,) = (second / "runs").iterdir()
    assert made.name.endswith("-m") and str(made) in err.replace(" ", "")
    assert (made / "config.toml").read_text() == (first / "config.toml").read_text()


def test_an_endpoint_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["--problem", "L1_23_Softmax", "--samples", "3", "-o", "concurrency=3"]
    error = {"message": "no model x", "code": "model_not_found"}
    with serve(Answer(status=404, body={"error": error})) as stub:
        code, said, err = call("--model", "x", "--base-url", stub.url, *words, "--out", out)
    assert (code, said) == (1, "")
    assert "stopped: the model failed 3 times in a row" in err and "no model x" in err
    assert f"--resume {out}" in err
    with serve(reply(4)) as stub:
        url = f"policy.base_url={stub.url}"
        code, said, _ = call("--resume", out, "-o", url, "-o", "settings.max_turns=4", "--json")
    assert (code, json.loads(said)["overall"]["counts"]["trajectories"]) == (0, 3)


def test_a_model_that_refuses_everything_has_figures(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = f"--problem L1_23_Softmax --samples 2 --model m --json --out {out}".split()
    with serve(Answer([delta(refusal="No."), delta("stop")])) as stub:
        code, said, _ = call(*words, "-o", f"policy.base_url={stub.url}")
    figures = json.loads(said)
    assert (code, figures["overall"]["correct"]["avg"]["value"]) == (0, 0.0)
    assert figures == json.loads((out / "metrics.json").read_text())
    assert call("--from", out)[0] == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_a_dry_run_plays_nothing(tmp_path: Path, as_json: bool) -> None:
    out = tmp_path / "run"
    words = ["-o", "requests_per_minute=3", "--samples", "2", "--dry-run"] + ["--json"] * as_json
    code, said, _ = call(config_file(tmp_path), "--out", out, *words)
    assert (code, out.exists()) == (0, False)
    if as_json:
        told = json.loads(said)
        assert (told["episodes"], told["turns"], told["least_seconds"]) == (6, 18, 360)
        assert told["config"]["policy"]["kind"] == "scripted"
    else:
        assert "# episodes: 6" in said and "# turns: 18" in said and "# least_seconds: 360" in said
        (tmp_path / "again.toml").write_text(said)
        assert read_config(tmp_path / "again.toml").samples == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "problem is missing; set it in the file or with --problem"),
        (["--problem", "L1"], "policy is missing; set it in the file or with --model"),
        (["{folder}/eval.toml", "--device", "cpu", "--language", "cuda"], "use language='auto'"),
        (["--problem", "L1_23_Sofmax", "--model", "m"], "did you mean L1_23_Softmax"),
        (["--problem", "L1", "--model", "m", "--max-turns", "0"], "settings.max_turns = 0"),
        (["--problem", "L1", "--model", "human", "--out", "{folder}/a"], "kevin-env play --human"),
        (["{folder}/nope.toml"], "nope.toml: No such file or directory"),
        (["{folder}/eval.toml", "-o", "policy.replies={folder}/nowhere"], "no folder"),
        (["{folder}/eval.toml", "--max-turns", "4"], "no reply for turn 4"),
        (["--resume", "{folder}"], "is not a run folder"),
        (["--resume", "{folder}", "--out", "{folder}/a"], "leave out CONFIG.toml"),
        (["--from", "{folder}/nope.jsonl"], "nope.jsonl: no such trajectory file"),
        (["--from", "{folder}/problems"], "no trajectory with a turn"),
        (["--from", "{folder}/eval.toml", "--samples", "3"], "leave out --samples"),
        (["--from", "{folder}/a.jsonl", "--resume", "{folder}"], "leave out --resume"),
        (
            ["--from", "{folder}/a.jsonl", "--agent", "a b", "--max-turns", "2"],
            "leave out --agent, --max-turns",
        ),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    config_file(tmp_path)
    result = CliRunner().invoke(app, ["eval", *(word.format(folder=tmp_path) for word in words)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr and result.stderr.startswith("kevin-env: ")
    assert KEY not in result.stderr


def test_no_key_is_one_clear_line_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    code, _, err = call("--model", "m", "--problem", "L1_23_Softmax", "--out", tmp_path / "run")
    assert (code, (tmp_path / "run").exists()) == (2, False)
    assert "OPENAI_API_KEY" in err


def test_figures_of_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    problem = ProblemRef(id="L1_26_GELU_", sha256="0", level=1)
    one = trajectory(turn(1), RIGHT, sample=0)
    other = trajectory(RIGHT, id="2", sample=0, stop_reason="interrupted")
    file = write(tmp_path / "a" / "x.jsonl", one, other)
    third = trajectory(timed(1, 0.5), id="3", sample=0, problem=problem)
    write(tmp_path / "a" / "b" / "y.jsonl", third)

    def counts(path: Path, *words: str) -> dict[str, Any]:
        code, said, _ = call("--from", path, "--json", *words)
        assert code == 0
        return json.loads(said)["overall"]

    assert counts(file)["counts"]["trajectories"] == 2, "no evaluation numbered them: two samples"
    whole = counts(tmp_path / "a", "-o", "prices.prompt=10", "-o", "prices.completion=10")
    assert (whole["counts"]["problems"], whole["counts"]["trajectories"]) == (2, 3)
    assert whole["totals"]["cost"] == pytest.approx(2 * 15 * 10e-6)
    with file.open("a") as out:
        out.write("nonsense\n")
    code, said, err = call("--from", file)
    assert code == 0 and "left out: " in err and "line 3" in err and "1 problem" in said


def test_figures_of_a_run_folder_are_those_that_it_has(tmp_path: Path) -> None:
    out = tmp_path / "run"
    call(config_file(tmp_path, baselines=["eager", "compile"]), "--out", out)
    code, said, _ = call("--from", out, "--json")
    assert (code, json.loads(said)) == (0, json.loads((out / "metrics.json").read_text()))
    assert json.loads(said)["overall"]["speed"].keys() == {"eager", "compile"}


def test_text_of_models_does_not_reach_the_terminal(tmp_path: Path) -> None:
    error = {"message": "[red]x[/bad] \x1b[2J\x1b]0;t\x07 \x9b1m", "code": "a"}
    words = ["eval", "--model", "m", "--problem", "L1_23_Softmax", "-o", "concurrency=1"]
    with serve(Answer(status=400, body={"error": error})) as stub:
        words += ["--base-url", stub.url, "--out", str(tmp_path)]
        result = CliRunner().invoke(app, words)
    assert "[red]x[/bad]" in result.stderr
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in result.stderr)


def test_what_was_recorded_counts_on_the_board() -> None:
    recorded = [
        trajectory(timed(1, 1.0), timed(2, 3.0), sample=0),
        trajectory(timed(1, 1.0), sample=1, stop_reason="judge_error"),
        trajectory(timed(1, 1.0), sample=1, stop_reason=None, id="e2"),
        trajectory(timed(1, 9.0), sample=7),
        trajectory(timed(1, 9.0)),
    ]
    board = Board("t", ["L1_23_Softmax"], Shape(3, 2), recorded)
    assert (board.done, board.left, board.planned) == (3, 3, 6)
    assert "left" not in progress_text(board), "nothing of that was played just now"
    best = board.lanes["L1_23_Softmax"].best
    assert best is not None and (best[1].speedup, best[0], best[1].turn) == (3.0, 0, 2)


def points(run: Path) -> dict[str, list[int]]:
    """The steps of every scalar in the event files of a run, with repetitions."""
    found: dict[str, list[int]] = {}
    for event in events_of(run):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(event.step)
    return {tag: sorted(steps) for tag, steps in found.items()}


def events_of(run: Path) -> list[Any]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    files = sorted((run / "tensorboard").iterdir())
    return [event for file in files for event in EventFileLoader(str(file)).Load()]


def test_every_episode_is_a_point_for_tensorboard_and_the_figures_are_the_last(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    code, said, _ = call(config_file(tmp_path), "--out", out, "--tensorboard", "--json")
    found = points(out)
    assert code == 0
    names = "Progress/CompletionFraction Reward/Mean Kernel/CorrectRate Distributions/Rewards"
    for name in names.split():
        assert found[name] == [1, 2, 3, 4, 5, 6], name
    assert found["Eval/CorrectRate"] == [6]
    assert tomllib.loads((out / "config.toml").read_text())["tensorboard"] is True
    (value,) = tensorboard_values(out, "Eval/CorrectRate").values()
    assert value == pytest.approx(json.loads(said)["overall"]["correct"]["avg"]["value"])
    correct = tensorboard_values(out, "MultiTurn/SuccessRate")
    ended = RunFolder(out).trajectories(lambda line: None)
    right = [any(turn.category == "correct" for turn in each.turns) for each in ended]
    assert correct == dict(enumerate(right, start=1))


def test_a_folder_of_another_run_gets_no_event_file(tmp_path: Path) -> None:
    out, config = tmp_path / "run", config_file(tmp_path)
    assert call(config, "--out", out)[0] == 0
    code, _, err = call(config, "--out", out, "--max-turns", "2", "--tensorboard")
    assert code == 2 and "was begun with settings.max_turns" in err
    assert not (out / "tensorboard").exists()


def tensorboard_values(run: Path, name: str) -> dict[int, float]:
    """The values of a scalar by step."""
    from tensorboard.util.tensor_util import make_ndarray

    return {
        event.step: float(make_ndarray(value.tensor))
        for event in events_of(run) for value in event.summary.value if value.tag == name
    }  # fmt: skip


def test_a_run_that_is_taken_up_logs_no_point_twice_and_leaves_none_out(tmp_path: Path) -> None:
    out, config = tmp_path / "run", config_file(tmp_path, tensorboard=True)
    call(config, "--out", out, "--samples", "1")
    assert points(out)["Reward/Mean"] == [1, 2, 3]
    # As a kill leaves it: the third point half-written, no figures.
    (file,) = (out / "tensorboard").iterdir()
    file.write_bytes(cut_before(file, 3))
    assert points(out)["Reward/Mean"] == [1, 2]
    assert call("--resume", out, "--samples", "2")[0] == 0
    whole = points(out)
    assert whole["Reward/Mean"] == whole["Progress/CompletionFraction"] == [1, 2, 3, 4, 5, 6]
    assert whole["Eval/CorrectRate"] == [6]
    assert call("--resume", out)[0] == 0
    assert points(out) == whole
    call("--resume", out, "-o", 'baselines=["eager","compile"]')
    more = points(out)
    assert more.pop("Eval/AgainstCompile/AvgSpeedup") == [6]
    assert {name: steps for name, steps in more.items() if "AgainstCompile" not in name} == whole


def cut_before(file: Path, step: int) -> bytes:
    """An event file up to the middle of the first event of a step, and nothing after it."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]

    framing, kept = 16, 0
    for record in RawEventFileLoader(str(file)).Load():
        if Event.FromString(record).step >= step:
            return file.read_bytes()[: kept + len(record) // 2]
        kept += len(record) + framing
    raise AssertionError(f"no step {step}")


def test_samples_that_a_beam_drops_are_no_points(tmp_path: Path) -> None:
    beam = {"kind": "beam", "keep": 1, "rounds": 3}
    out = tmp_path / "run"
    config = config_file(tmp_path, samples=3, search=beam)
    assert call(config, "--out", out, "--tensorboard")[0] == 0
    stops = [each.stop_reason for each in RunFolder(out).trajectories(lambda line: None)]
    assert "pruned" in stops
    assert points(out)["Reward/Mean"] == list(range(1, 10))
    assert max(tensorboard_values(out, "Progress/CompletionFraction").values()) == 1


def test_an_episode_that_failed_is_a_point_when_it_has_been_taken_up(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = [
        "--problem",
        "L1_23_Softmax",
        "--max-turns",
        "2",
        "-o",
        "concurrency=1",
        "--tensorboard",
    ]
    broken = Answer(status=400, body={"error": {"message": "no"}})
    with serve(reply(4), broken) as stub:
        assert call("--model", "m", "--base-url", stub.url, *words, "--out", out)[0] == 1
    assert "Reward/Mean" not in points(out)
    with serve(reply(7)) as stub:
        assert call("--resume", out, "-o", f"policy.base_url={stub.url}")[0] == 0
    assert points(out)["Reward/Mean"] == [1]


@pytest.mark.parametrize(
    ("option", "module", "name"),
    [
        (["--tensorboard"], "tensorboard.summary.writer.event_file_writer", "TensorBoard"),
        (["--wandb", "kevin"], "wandb", "wandb"),
    ],
)
def test_without_its_logger_it_is_one_clear_line_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: list[str], module: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, said, err = call(config_file(tmp_path), "--out", tmp_path / "run", *option)
    assert (code, said, (tmp_path / "run").exists()) == (2, "", False)
    assert err == f"kevin-env: {name} is not installed: pip install 'kevin-env[{name.lower()}]'"


def test_a_run_is_logged_to_wandb_and_resumed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'kevin-env[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    out = tmp_path / "run"
    assert call(config_file(tmp_path), "--out", out, "--samples", "1", "--wandb", "kevin")[0] == 0
    assert call("--resume", out)[0] == 0
    runs = [each.name.rpartition("-")[2] for each in out.glob("wandb/offline-run-*")]
    assert len(runs) == 2 and len(set(runs)) == 1
