"""Times held against the roofline of their problem on this device.

The work of a problem and the ceilings of the device are the judge's own figures; the submission is not asked.
"""

from collections.abc import Callable

import torch

from kevin_env.judge.cases import open_cases
from kevin_env.judge.ceilings import CeilingStore
from kevin_env.judge.gate import Drawn
from kevin_env.judge.lease import Lease
from kevin_env.judge.reference import Case
from kevin_env.judge.work import find_work
from kevin_env.outcome import Correct
from kevin_env.problem import Problem, ProblemError
from kevin_env.roofline import Roofline, Work, roofline_of

SMALLER = 0.25
"""Share of the roofline's time that a case may take at most to be called smaller."""
SEED = 1


class Rooflines:
    """The work of problems on one device, each found once. Not safe for threads: hold `Bench.yardsticks`.

    Args:
        lease: Of the device; held while the reference is counted. Do not hold it.
        ceilings: Of the device.
    """

    def __init__(self, lease: Lease, ceilings: CeilingStore) -> None:
        self._lease = lease
        self._ceilings = ceilings
        self._work: dict[tuple[str, str], Work | None] = {}

    def added(self, outcome: Correct, key: str, case: Case, draw: Callable[[], Drawn]) -> Correct:
        """The outcome with its roofline, where a speedup is told and the work can be counted.

        Args:
            outcome: Of this case.
            key: Of its problem.
            case: With its weights drawn.
            draw: Gives an input set of it.
        """
        seconds = outcome.submission_seconds
        if outcome.speedup is None or seconds is None:
            return outcome
        work = self._counted(key, case, draw)
        return outcome if work is None else outcome.model_copy(update={"roofline": self._held(work, seconds)})

    def knows(self, key: str, case: Case) -> bool:
        """Whether the work of a case was counted before."""
        return (key, case.name) in self._work

    def smaller(self, problem: Problem, case: Case) -> Case | None:
        """A case with far less to do than this one, which has been counted; its weights are not drawn."""
        whole = self._least(problem.sha256, case)
        with self._lease.shared():
            others = [other for other in open_cases(problem, case.device) if other.name != case.name]
        for other in others:
            part = self._least(problem.sha256, other) if self._drawn(other) else None
            if whole is not None and part is not None and part <= SMALLER * whole:
                return other
        return None

    def _drawn(self, case: Case) -> bool:
        """Draws a case's weights; whether there was room for them."""
        try:
            with self._lease.shared():
                case.draw_weights(SEED)
        except torch.OutOfMemoryError:
            return False
        return True

    def _least(self, key: str, case: Case) -> float | None:
        """Seconds of a case at the roofline."""
        work = self._counted(key, case, lambda: None)
        held = None if work is None else self._held(work, 1.0)
        return None if held is None else held.seconds

    def _held(self, work: Work, seconds: float) -> Roofline | None:
        try:
            found = roofline_of(work, self._ceilings.of(work), seconds)
            return roofline_of(work, self._ceilings.of(work, again=True), seconds) if found.above else found
        except torch.OutOfMemoryError:
            return None

    def _counted(self, key: str, case: Case, draw: Callable[[], Drawn | None]) -> Work | None:
        if (key, case.name) not in self._work:
            try:
                with self._lease.shared():
                    self._work[key, case.name] = _count(case, draw())
            except torch.OutOfMemoryError:  # others may hold what is missing
                return None
        return self._work[key, case.name]


def _count(case: Case, drawn: Drawn | None) -> Work | None:
    """The work of a case; None where the reference cannot be watched."""
    try:
        if drawn is None:
            return find_work(case, *case.draw_inputs("own", SEED))
        return find_work(case, drawn.skeleton, drawn.image.tensors)
    except ProblemError:
        return None
