"""The examples run as their docstrings say."""

import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from episodes import WRONG, another, correct
from stub_server import Answer, delta, serve
from tiny_model import EXAMPLES, load_example
from typer.testing import CliRunner

from kevin_env.app.evaluate.config import read_config
from kevin_env.cli import app
from kevin_env.outcome import CompileError, Outcome
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

Run = Callable[..., None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs an example as from the command line, with a judge that has its outcomes beforehand."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(name: str, *words: str, outcomes: list[Outcome]) -> None:
        module = load_example(name)
        monkeypatch.setattr(module, "LocalPool", lambda: closing(ScriptedPool(outcomes)))
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
        module.main()

    return run


def replies(count: int) -> list[Answer]:
    """As many answers with different kernels."""
    return [
        Answer([delta(content=another(number)), delta(finish="stop")]) for number in range(count)
    ]


@pytest.mark.full
def test_the_gym_loop_plays_a_wrong_and_a_right_answer() -> None:
    command = [sys.executable, str(EXAMPLES / "gym_loop.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("correctness/values")
    assert lines[1].startswith("correct/")
    assert lines[2].startswith("returns [")


def test_a_model_at_an_endpoint_refines_a_kernel(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(*replies(2)) as stub:
        run(
            "api_model",
            "m",
            "--base-url",
            stub.url,
            "--max-turns",
            "2",
            outcomes=[WRONG, correct(2.0)],
        )
    shown = capsys.readouterr().out
    assert "class ModelNew" in shown
    assert "Double it." not in shown  # its reasoning
    assert "--- turn 2: correct/timed, score 2.30." in shown
    assert "returns [0.92, 2.3]" in shown
    (trajectory,) = read_trajectories(tmp_path / "trajectories.jsonl")
    assert isinstance(trajectory, Trajectory)
    assert (trajectory.model, trajectory.stop_reason) == ("m", "max_turns")
    assert trajectory.turns[0].reasoning == "Double it."


def test_a_model_that_does_not_answer_ends_with_a_line(run: Run, tmp_path: Path) -> None:
    refused = Answer(status=401, body={"error": {"message": "no"}})
    with serve(refused) as stub, pytest.raises(SystemExit, match=r"no reply: .*OPENAI_API_KEY"):
        run("api_model", "m", "--base-url", stub.url, outcomes=[])
    assert not (tmp_path / "trajectories.jsonl").exists()  # there was no turn


def test_the_best_of_n_is_gone_on_with(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        correct(1.0), correct(3.0), WRONG, CompileError(kind="compiler", message="no"),
        correct(2.0), WRONG,
    ]  # fmt: skip
    with serve(*replies(6)) as stub:
        run(
            "best_of_n",
            "m",
            "--base-url",
            stub.url,
            "--max-turns",
            "2",
            "--n",
            "3",
            outcomes=outcomes,
        )
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[0].removeprefix("turn 1: ").split(", ")) == [
        "correct/timed 1.30", "correct/timed 3.30", "correctness/values 0.00",
    ]  # fmt: skip
    assert "correct/timed 2.30" in lines[1]
    assert lines[2] == "returns [4.22, 2.3]"


def test_a_person_plays(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "".join(f"{another(number)}.\n" for number in range(2))
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    run("human", outcomes=[WRONG, correct(2.0)])
    shown = capsys.readouterr()
    assert "# Turn 2 of 4" in shown.err
    assert "512 of 1024 elements" in shown.out
    assert shown.out.splitlines()[-1] == "interrupted: returns [0.92, 2.3]"


@pytest.mark.full
@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="pip install 'kevin-env[local]'"
)
def test_a_local_model_plays(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("local_model", outcomes=[])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("format/") for line in lines)


@pytest.mark.parametrize("name", ["single_turn", "kevin"])
def test_a_config_file_is_what_eval_takes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        app, ["eval", str(EXAMPLES / "configs" / f"{name}.toml"), "--dry-run", "--json"]
    )
    assert (result.exit_code, result.stderr, list(tmp_path.iterdir())) == (0, "", [])
    told = json.loads(result.stdout)
    played = told["config"]["settings"]
    assert (told["samples"], told["turns_of_a_sample"]) == (16, 8 if name == "kevin" else 1)
    assert (played["examples"], played["index"], played["gamma"]) == ("one", "", 0.4)


def test_a_config_file_with_retrieval_needs_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = EXAMPLES / "configs" / "retrieved.toml"
    result = CliRunner().invoke(app, ["eval", str(file), "--dry-run"])
    assert result.exit_code == 2 and f"there is no index at {tmp_path}/kernels" in result.stderr
    assert read_config(file).settings.examples == "retrieved"


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="pip install 'kevin-env[trl]'")
@pytest.mark.parametrize(
    ("words", "group", "settings"),
    [
        ([], 16 * 4, {"max_turns": 4, "language": "cuda", "gamma": 0.4, "examples": "one"}),
        (
            ["--config", "retrieved.toml", "--max-turns", "1"],
            16,
            {"max_turns": 1, "examples": "retrieved"},
        ),
        (["-o", "samples=8", "-o", "settings.language=triton"], 8 * 4, {"language": "triton"}),
    ],
)
def test_a_trainer_plays_what_a_config_file_says(
    words: list[str], group: int, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_example("train_trl")
    words = [str(EXAMPLES / "configs" / word) if word.endswith(".toml") else word for word in words]
    monkeypatch.setattr(sys, "argv", ["train_trl.py", "M", "--judge", "cpu", *words])
    arguments = module.parse()
    played = module.read(arguments)
    assert {
        **played.settings.model_dump(),
        **settings,
        "device": "cpu",
    } == played.settings.model_dump()
    assert played.problem == ("train",)
    numbers = module.config(arguments, played)
    assert (numbers["num_generations"], numbers["generation_batch_size"]) == (group, 8 * group)
    assert (numbers["temperature"], numbers["max_completion_length"]) == (0.9, 16384)


def test_the_recorded_episode_can_be_read() -> None:
    (trajectory,) = read_trajectories(EXAMPLES / "demo.h200.jsonl")
    assert isinstance(trajectory, Trajectory)
    assert [turn.outcome.category for turn in trajectory.turns] == [
        "compile", "runtime", "correctness", "correct", "correct",
    ]  # fmt: skip
    assert trajectory.returns[-1] == trajectory.turns[-1].score
