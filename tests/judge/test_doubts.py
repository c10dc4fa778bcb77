"""Times that are too good are measured again, told with a name, and not paid where nothing explains them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import correct
from in_process import InThisProcess
from judges import ScriptedClock

from kevin_env.episode import Episode
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.ceilings import CeilingStore
from kevin_env.judge.doubts import SHORTEST, doubted, explained, grows
from kevin_env.judge.flags import flag, flag_name
from kevin_env.judge.floor import Floor
from kevin_env.judge.judge import Clock, Judge
from kevin_env.judge.pace import Pace
from kevin_env.judge.stopwatch import Stopwatch
from kevin_env.judge.trial import Trial
from kevin_env.judge.unverified import Unverified, Wrong
from kevin_env.judge.usage import descendants
from kevin_env.judge.worker import Worker
from kevin_env.outcome import Correct, Incorrect
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.roofline import Ceilings, Work, roofline_of
from kevin_env.score import SCORES
from kevin_env.settings import Settings

SOURCE = """
import time
import torch
N = 8192
CASES = {"cpu": {"N": 4096}, "near": {"N": 2000}, "small": {"N": 16}}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
def get_inputs():
    return [torch.randn(N, 16)]
def get_init_inputs():
    return []
"""
NAMES = "class Model(", "class ModelNew("
HONEST = SOURCE.replace(*NAMES)
SLEEPS = SOURCE.replace("return torch", "time.sleep(len(x) / 300_000)\n        return torch")
CONSTANT = HONEST.replace("return torch", "time.sleep(0.15)\n        return torch")
PROBLEM = Problem(id="x", name="x", source=SOURCE, cases=("main", "cpu", "near", "small"))
PACE = Pace(pairs=(2, 2), seconds=60.0, warm_ups=1, sets=1, sets_of_others=1)
LOW = Ceilings(reading=1.0, copying=1.0, rates={"fp32": 1.0})
SCRIPT = {
    name: Correct(
        kind="timed",
        message="Right.",
        speedup=1.0,
        speedup_interval=(0.9, 1.1),
        max_unseen_gain=0.0,
        reference_seconds=n / 300_000,
        submission_seconds=n / 300_000,
    )
    for name, n in {"cpu": 4096, "near": 2000, "small": 16}.items()
}
"""What an honest submission's times are: they grow with the case."""
CONSTANT_TIMES = SCRIPT | {"small": SCRIPT["small"].model_copy(update={"submission_seconds": 4096 / 300_000})}
HIGH = Ceilings(reading=1e15, copying=1e15, rates={"fp32": 1e18})


class Watched(ScriptedClock):
    """A scripted clock, or where the script is empty the judge's own: then a time is told however much it varies.

    Attributes:
        again: Whether each question for the device's ceilings was one to measure them again.
        states: What the submission's processes did meanwhile, as the kernel names it.
    """

    def __init__(self) -> None:
        super().__init__(SCRIPT)
        self.own: Clock
        self.again: list[bool] = []
        self.states: set[str] = set()

    def __call__(self, trial: Trial, unverified: Unverified, watch: Stopwatch) -> Correct:
        if self.script:
            return super().__call__(trial, unverified, watch)
        self.cases.append(trial.case.name)
        self.worker = trial.worker
        timed = self.own(trial, unverified, watch)
        return timed.model_copy(update={"kind": "timed", "speedup": 1.0})


@pytest.fixture(scope="module")
def clocked(a_judge: Callable[..., Judge]) -> tuple[Judge, Watched]:
    clock = Watched()
    judge = a_judge(PACE, clock)
    clock.own = judge._timed
    return judge, clock


@pytest.fixture
def judge(clocked: tuple[Judge, Watched]) -> Judge:
    return clocked[0]


@pytest.fixture
def seen(clocked: tuple[Judge, Watched]) -> Watched:
    clock = clocked[1]
    clock.script, clock.cases, clock.again, clock.states = SCRIPT, [], [], set()
    return clock


def judged(
    judge: Judge, code: str, seen: Watched, monkeypatch: pytest.MonkeyPatch, *ceilings: Ceilings, source: str = SOURCE
) -> tuple[Correct, Judgement]:
    def of(self: CeilingStore, work: Work, again: bool = False) -> Ceilings:
        seen.again.append(again)
        seen.states |= set(states(seen.worker))
        return ceilings[-1] if again else ceilings[0]

    monkeypatch.setattr(CeilingStore, "of", of)
    problem = PROBLEM.model_copy(update={"source": source})
    judgement = judge.judge(problem, Submission(code=code), Options(device="cpu", inputs="shipped"), lambda _: None)
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

    def dismiss(bench: Bench, worker: Worker) -> None:
        found.append(worker)
        worker.dismiss()

    monkeypatch.setattr(Bench, "dismiss", dismiss)
    return found


def test_a_submission_ends_early_once_its_time_is_beyond_doubt(judge, seen, gone, monkeypatch) -> None:
    source = SOURCE + "# another problem, of which nothing is known\n"
    for known in (False, True):
        outcome, _ = judged(judge, HONEST, seen, monkeypatch, HIGH, source=source)
        assert (outcome.kind, outcome.roofline is not None, gone) == ("timed", True, [seen.worker] * known)
    judged(judge, HONEST, seen, monkeypatch, LOW, source=source)
    assert len(seen.cases) == 2 + 3 and len(gone) == 1  # who is doubted is still needed


def test_whoever_ended_early_is_told_of_a_wrong_answer_all_the_same(judge, seen, gone, monkeypatch) -> None:
    right = judge.judge(PROBLEM, Submission(code=HONEST), Options(device="cpu", inputs="shipped"), lambda _: None)
    compare = Unverified.compare_beside_others

    def wrong(self: Unverified, *given: Any) -> None:
        compare(self, *given)
        raise Wrong(Incorrect(kind="values", message="wrong", input_set="cpu/own"))

    monkeypatch.setattr(Unverified, "compare_beside_others", wrong)
    options = Options(device="cpu", inputs="shipped")
    outcome = judge.judge(PROBLEM, Submission(code=HONEST), options, lambda _: None).outcome
    assert right.outcome.category == "correct" and outcome.category == "correctness" and gone


def test_higher_ceilings_explain_a_time_above_the_roofline(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW, HIGH)
    assert (seen.cases, seen.again, names(judgement)) == (["cpu"], [False, True], [])
    assert outcome.roofline is not None and outcome.roofline.fraction < 1


@pytest.mark.parametrize("script", [SCRIPT, {}], ids=["scripted", "measured"])
def test_work_that_is_done_grows(judge, seen, monkeypatch, script: dict[str, Correct]) -> None:
    seen.script = script
    source = SOURCE if script else SLEEPS
    outcome, judgement = judged(judge, source.replace(*NAMES), seen, monkeypatch, LOW, source=source)
    assert seen.states == {"T"}  # it does nothing while it is found out what the device reaches
    assert seen.cases == ["cpu", "cpu", "small"]  # the case `near` is not small enough to tell
    assert (outcome.kind, outcome.speedup, names(judgement)) == ("timed", 1.0, ["above_roofline"])
    assert outcome.roofline is not None and outcome.roofline.above
    assert SCORES["roofline"](outcome) == pytest.approx(1.3)


@pytest.mark.parametrize("script", [CONSTANT_TIMES, {}], ids=["scripted", "measured"])
def test_a_time_that_stays_the_same_is_not_paid(judge, seen, monkeypatch, script: dict[str, Correct]) -> None:
    seen.script = script
    source = SOURCE if script else SLEEPS
    outcome, judgement = judged(judge, HONEST if script else CONSTANT, seen, monkeypatch, LOW, source=source)
    assert seen.cases == ["cpu", "cpu", "small"]
    assert (outcome.kind, outcome.speedup, outcome.roofline) == ("too_noisy", None, None)
    assert names(judgement) == ["does_not_grow"]
    assert "far smaller case `small`" in outcome.message
    assert SCORES["roofline"](outcome) == SCORES["kevin"](outcome) == 0.3


def test_without_a_smaller_case_it_is_only_told(judge, seen, monkeypatch) -> None:
    source = SOURCE.replace("16}", "1500}")
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW, source=source)
    assert seen.cases == ["cpu", "cpu"]
    assert (outcome.kind, names(judgement)) == ("timed", ["above_roofline"])


def test_a_reference_that_cannot_be_watched_has_no_roofline(judge, seen, monkeypatch) -> None:
    watched = "import torch\nfrom torch.utils._python_dispatch import _get_current_dispatch_mode as watched\n"
    source = SOURCE.replace("import torch\n", watched).replace(
        "torch.softmax(x, 1)", "x * 2 if watched() is None else 1 / 0"
    )
    code = HONEST.replace("torch.softmax(x, 1)", "x * 2")
    outcome, judgement = judged(judge, code, seen, monkeypatch, LOW, source=source)
    assert (outcome.kind, outcome.roofline, names(judgement)) == ("timed", None, [])


def above(seconds: float | None = 1e-3, reference: float | None = 1e-2) -> Correct:
    held = roofline_of(Work(read=1, written=1, products={}, operations=1), LOW, 1e-3)
    times = {"submission_seconds": seconds, "reference_seconds": reference}
    return correct(2.0).model_copy(update={"roofline": held} | times)


def test_what_is_doubted() -> None:
    floor = Floor(bytes=10**9, rate=4e12)
    assert doubted(above(), None) and doubted(correct(100.0), floor)
    assert not doubted(correct(1.0), floor) and not doubted(correct(100.0), None)
    noisy = above().model_copy(update={"kind": "too_noisy", "speedup": None})
    assert not doubted(noisy, floor)
    wide = above().model_copy(update={"kind": "too_noisy", "speedup": 2.0, "reference_seconds": 1.0})
    assert not doubted(wide.model_copy(update={"speedup_interval": (1e-3, 9.0)}), floor), "it may have been slow"
    assert doubted(wide.model_copy(update={"speedup_interval": (1e9, 1e10)}), floor)


SAME = above(reference=1e-4)


@pytest.mark.parametrize(
    ("whole", "part", "grown"),
    [
        (above(), SAME, False),
        (above(), above(0.91e-3, 4.9e-3), False),
        (above(), above(0.89e-3, 1e-4), True),
        (above(), above(reference=5.1e-3), True),  # nor does the reference's own time
        (above(0.99 * SHORTEST), SAME, True),
        (above(seconds=None), SAME, True),
        (above(), above(seconds=None, reference=1e-4), True),
    ],
)
def test_what_grows(whole: Correct, part: Correct, grown: bool) -> None:
    flags: list[str] = []
    assert grows(whole, part) == grown
    outcome = explained(whole, ("s", part), flags)
    assert (outcome.speedup is not None) == grown
    assert [flag_name(flag) for flag in flags] == ["above_roofline" if grown else "does_not_grow"]


def test_flags_have_names_also_among_those_that_had_none() -> None:
    assert flag_name(flag("record_contradicted", "1 %: nearly nothing")) == "record_contradicted"
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
