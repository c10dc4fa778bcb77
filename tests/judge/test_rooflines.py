"""Times against the roofline: those above it are paid, with a flag."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import InThisProcess
from judges import ScriptedClock

from kevin_env.episode import Episode
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.candidates import WarmPool
from kevin_env.judge.judge import RETRIES, Judge
from kevin_env.judge.roofline.ceilings import CeilingStore
from kevin_env.judge.timing.session import UnverifiedAnswers, WrongAnswer
from kevin_env.judge.verdict import flag, flag_name
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct, Incorrect
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.roofline import Ceilings, Work
from kevin_env.score import SCORES
from kevin_env.settings import Settings

SOURCE = """
import torch
N = 8192
CASES = {"cpu": {"N": 4096}}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
def get_inputs():
    return [torch.randn(N, 16)]
def get_init_inputs():
    return []
"""
HONEST = SOURCE.replace("class Model(", "class ModelNew(")
PROBLEM = Problem(id="x", name="x", source=SOURCE, cases=("main", "cpu"))
PACE = Pace(pairs=(2, 2), seconds=60.0, warm_ups=1, sets=1, sets_of_others=1)
TIMED = Correct(
    kind="timed", message="Right.", speedup=1.0, speedup_interval=(0.9, 1.1), max_unseen_gain=0.0,
    reference_seconds=0.01, submission_seconds=0.01,
)  # fmt: skip
LOW = Ceilings(reading=1.0, copying=1.0, rates={"fp32": 1.0})
HIGH = Ceilings(reading=1e15, copying=1e15, rates={"fp32": 1e18})


class Watched(ScriptedClock):
    """A scripted clock.

    Attributes:
        again: Whether each question for the device's ceilings was one to measure them again.
        states: What the submission's processes did meanwhile, as the kernel names it.
    """

    def __init__(self) -> None:
        super().__init__({"cpu": TIMED})
        self.again: list[bool] = []
        self.states: set[str] = set()


@pytest.fixture(scope="module")
def clocked(a_judge: Callable[..., Judge]) -> tuple[Judge, Watched]:
    clock = Watched()
    return a_judge(PACE, clock), clock


@pytest.fixture
def judge(clocked: tuple[Judge, Watched]) -> Judge:
    return clocked[0]


@pytest.fixture
def seen(clocked: tuple[Judge, Watched]) -> Watched:
    clock = clocked[1]
    clock.script, clock.cases, clock.again, clock.states = {"cpu": TIMED}, [], [], set()
    return clock


def judged(
    judge: Judge,
    code: str,
    seen: Watched,
    monkeypatch: pytest.MonkeyPatch,
    *ceilings: Ceilings,
    source: str = SOURCE,
) -> tuple[Correct, Judgement]:
    def of(self: CeilingStore, work: Work, again: bool = False) -> Ceilings:
        seen.again.append(again)
        seen.states |= set(states(seen.worker))
        return ceilings[-1] if again else ceilings[0]

    monkeypatch.setattr(CeilingStore, "of", of)
    problem = PROBLEM.model_copy(update={"source": source})
    judgement = judge.judge(
        problem, Submission(code=code), Options(device="cpu", inputs="shipped"), lambda _: None
    )
    assert isinstance(judgement.outcome, Correct), judgement
    return judgement.outcome, judgement


def states(worker: Worker) -> Iterator[str]:
    for process in descendants(worker.pid):
        yield Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def names(judgement: Judgement) -> list[str]:
    return [flag_name(flag) for flag in judgement.flags]


def test_a_time_below_the_roofline_is_believed_at_once(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, HIGH)
    assert (seen.cases, seen.again, names(judgement)) == (["cpu"], [False], [])
    held = outcome.roofline
    assert held is not None
    assert held.bytes == 2 * 4096 * 16 * 4
    assert 0 < held.fraction < 1
    assert held.fraction * (outcome.submission_seconds or 0) == pytest.approx(held.seconds)


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """Who was let go before all was compared, as on a GPU."""
    found: list[Worker] = []

    def dismiss(pool: WarmPool, worker: Worker) -> None:
        found.append(worker)
        worker.dismiss()

    monkeypatch.setattr(WarmPool, "dismiss", dismiss)
    return found


def test_a_submission_ends_once_it_is_timed(judge, seen, gone, monkeypatch) -> None:
    for ceilings in (HIGH, LOW):
        judged(judge, HONEST, seen, monkeypatch, ceilings)
        assert gone.pop() is seen.worker and not gone


def test_whoever_ended_early_is_told_of_a_wrong_answer_all_the_same(
    judge, seen, gone, monkeypatch
) -> None:
    right = judge.judge(
        PROBLEM, Submission(code=HONEST), Options(device="cpu", inputs="shipped"), lambda _: None
    )
    compare = UnverifiedAnswers.compare_beside_others

    def wrong(self: UnverifiedAnswers, *given: Any) -> None:
        compare(self, *given)
        raise WrongAnswer(Incorrect(kind="values", message="wrong", input_set="cpu/own"))

    monkeypatch.setattr(UnverifiedAnswers, "compare_beside_others", wrong)
    options = Options(device="cpu", inputs="shipped")
    outcome = judge.judge(PROBLEM, Submission(code=HONEST), options, lambda _: None).outcome
    assert right.outcome.category == "correct" and outcome.category == "correctness" and gone


def test_higher_ceilings_explain_a_time_above_the_roofline(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW, HIGH)
    assert (seen.cases, seen.again, names(judgement)) == (["cpu"], [False, True], [])
    assert outcome.roofline is not None and outcome.roofline.fraction < 1


def test_a_time_above_the_roofline_is_paid_with_a_flag(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW)
    assert seen.states == {"T"}  # it does nothing while it is found out what the device reaches
    assert seen.cases == ["cpu"]
    assert (outcome.kind, outcome.speedup, names(judgement)) == ("timed", 1.0, ["above_roofline"])
    assert outcome.roofline is not None and outcome.roofline.above
    assert SCORES["roofline"](outcome) == pytest.approx(1.3)


def test_a_reference_that_cannot_be_watched_has_no_roofline(judge, seen, monkeypatch) -> None:
    watched = "import torch\nfrom torch.utils._python_dispatch import _get_current_dispatch_mode as watched\n"
    source = SOURCE.replace("import torch\n", watched).replace(
        "torch.softmax(x, 1)", "x * 2 if watched() is None else 1 / 0"
    )
    code = HONEST.replace("torch.softmax(x, 1)", "x * 2")
    outcome, judgement = judged(judge, code, seen, monkeypatch, LOW, source=source)
    assert (outcome.kind, outcome.roofline, names(judgement)) == ("timed", None, [])


def test_flags_have_names_also_among_those_that_had_none() -> None:
    assert flag_name(flag("low_coverage", "1 %: nearly nothing")) == "low_coverage"
    for old in ("bursts tell 3 us a call; what else", "", "reference: another"):
        assert flag_name(old) == ""


def test_an_episode_is_paid_its_share_of_the_roofline(judge, seen) -> None:
    settings = Settings(score="roofline", rules="open", device="cpu", language="cpp", max_turns=1)
    episode = Episode(PROBLEM, InThisProcess(judge), settings)
    episode.start()
    turn = episode.submit(f"```python\n{HONEST}\n```")
    assert isinstance(turn.outcome, Correct), turn.outcome
    held = turn.outcome.roofline
    assert held is not None
    assert turn.score == pytest.approx(0.3 + min(held.fraction, 1.0))
    assert "The device needs at least" in turn.feedback
    again = Trajectory.model_validate_json(episode.trajectory.model_dump_json())
    assert again.turns[0].outcome == turn.outcome


@pytest.mark.parametrize(("retry", "times"), [(False, 1), (True, 1 + RETRIES)])
def test_a_noisy_time_is_taken_again_where_that_is_asked_for(
    judge, seen, retry: bool, times: int
) -> None:
    seen.script = {"cpu": TIMED.model_copy(update={"kind": "too_noisy"})}
    options = Options(device="cpu", retry_noisy=retry)
    outcome = judge.judge(PROBLEM, Submission(code=HONEST), options, lambda _: None).outcome
    assert (outcome.kind, seen.cases) == ("too_noisy", ["cpu"] * times)
