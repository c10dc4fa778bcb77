"""Episodes that start from a kernel: shown with its verdict, and paid only for what is faster."""

from pathlib import Path

import pytest
from episodes import SOURCE, correct, noisy

from kevin_env.episode import Episode
from kevin_env.outcome import CompileError, Outcome
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem, parse_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

START = '''"""A first version."""
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return first_version(x)
'''
OTHER = START.replace("first_version", "second_version").replace("A first", "A second")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    (tmp_path / "start.py").write_text(START)
    (tmp_path / "7_Double.py").write_text(SOURCE + '\nSTART = "start.py"\n')
    return parse_problem(tmp_path / "7_Double.py")


def episode(problem: Problem, outcomes: list[Outcome], **settings: object) -> Episode:
    chosen = Settings.of({"rules": "open", "max_turns": 3, **settings})
    return Episode(problem, ScriptedPool(outcomes, device=SCRIPTED_GPU), chosen)


def reply(code: str) -> str:
    return f"```python\n{code}\n```"


@pytest.mark.parametrize("templates", ["default", "kevin-paper"])
def test_the_first_prompt_shows_the_kernel_with_its_verdict(
    problem: Problem, templates: str
) -> None:
    playing = episode(problem, [correct(2.0), CompileError(kind="syntax", message="no"), correct(3.0)],
        templates=templates, device="cuda")  # fmt: skip
    first = playing.start()[0].content
    assert "return first_version(x)" in first and "2" in first
    if templates == "default":
        assert "Correct. Speedup over PyTorch eager: 2" in first and "write a faster one" in first
        assert "START" not in first and "start.py" not in first
    playing.submit(reply(OTHER))
    assert "return first_version(x)" in playing.messages[0].content
    playing.submit(reply(OTHER.replace("second", "third")))
    assert len(playing.turns) == 2 and playing.turns[0].turn == 1
    assert "return first_version(x)" not in playing.messages[0].content
    assert playing.trajectory.config["start"]["code"] == START


def test_its_own_code_is_paid_nothing_and_an_improvement_what_it_exceeds(problem: Problem) -> None:
    playing = episode(problem, [correct(2.0), correct(3.0)], pay="improvement")
    playing.start()
    turn = playing.submit(reply(START))
    assert (turn.score, turn.full_score) == (0.0, pytest.approx(2.3))
    assert "This is the code that you started from, which earns nothing." in turn.feedback
    assert playing.submit(reply(OTHER)).score == pytest.approx(1.0)
    playing = episode(problem, [correct(2.0)])
    playing.start()
    assert playing.submit(reply(START)).score == 0.0
    for pay in ("turn", "improvement"):  # a lucky measurement of it earns nothing, either
        playing = episode(problem, [noisy(1.0, 0.5), noisy(3.0, 2.0)], pay=pay)
        playing.start()
        assert playing.submit(reply(START)).score == 0.0


def test_a_file_or_the_best_turn_of_a_recorded_episode_of_the_problem(
    problem: Problem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = tmp_path / "run.jsonl"
    other = Problem(id="other", name="other", source=SOURCE + "\n# another\n")
    for each, code, speedups in (
        (problem, OTHER, [1.0, 5.0, 4.0]),
        (other, "# no\n" + OTHER, [9.0]),
    ):
        outcomes: list[Outcome] = [correct(1.0)] if each.start else []
        recorded = Episode(
            each, ScriptedPool([*outcomes, *map(correct, speedups)]),
            Settings(rules="open", max_turns=3), recorder=Recorder(record),
        )  # fmt: skip
        recorded.start()
        for number in range(len(speedups)):
            recorded.submit(reply(code.replace("second_version", f"version_{number}")))
        recorded.finish()
    for start, shown in (
        (str(record), "version_1(x)"),
        (str(tmp_path / "other.py"), "version_7(x)"),
    ):
        (tmp_path / "other.py").write_text(OTHER.replace("second_version", "version_7"))
        playing = episode(problem, [correct(5.0)], start=start)
        text = playing.start()[0].content
        assert shown in text and "first_version" not in text
    another = problem.model_copy(update={"source": SOURCE + "\n# a third\n", "start": None})
    assert "second_version" not in episode(another, [], start=str(record)).start()[0].content
    assert f"{record} has no timed kernel for {another.id} as it is now" in caplog.text
    with pytest.raises(ValueError, match=r"setting start=.*cannot read kernel"):
        Settings.of({"start": str(tmp_path / "none.py")})
