"""A time against the floor and the roofline of its problem on one device. The submission stands still meanwhile."""

from kevin_env.judge.bench import Bench
from kevin_env.judge.doubts import counted_seconds, doubted
from kevin_env.judge.floor import Floor
from kevin_env.judge.pauses import asleep
from kevin_env.judge.stopwatch import Stopwatch
from kevin_env.judge.supply import TIMED
from kevin_env.judge.trial import Trial
from kevin_env.outcome import Correct


def held_against(bench: Bench, outcome: Correct, trial: Trial, watch: Stopwatch) -> tuple[Correct, Floor | None]:
    """The outcome with its roofline, and the floor that it lies below."""
    with watch("load"), asleep(trial.worker), bench.yardsticks:
        return _held(bench, outcome, trial)


def beyond_doubt(bench: Bench, outcome: Correct, trial: Trial, watch: Stopwatch) -> Correct | None:
    """The outcome with its roofline, if it is not doubted by what was found of the problem before; else None.

    It takes no memory, of which answers that are still to be compared may hold much: a floor for which there is no room
    rules nothing out.
    """
    key, seconds = trial.problem.sha256, counted_seconds(outcome)
    with watch("load"), asleep(trial.worker), bench.yardsticks:
        if seconds is not None:
            known = bench.rooflines.knows(key, trial.case)
            if not (known and bench.floors.clears(seconds, key, trial.case)):
                return None
        outcome, floor = _held(bench, outcome, trial)
    return None if doubted(outcome, floor) else outcome


def _held(bench: Bench, outcome: Correct, trial: Trial) -> tuple[Correct, Floor | None]:
    of = trial.problem.sha256, trial.case, lambda: trial.draw(TIMED)
    seconds = counted_seconds(outcome)
    floor = None if seconds is None else bench.floors.under(seconds, *of)
    return bench.rooflines.added(outcome, *of), floor
