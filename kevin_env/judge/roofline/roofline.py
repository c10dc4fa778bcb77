"""Times held against the roofline of their problem on this device.

The work of a problem and the ceilings of the device are the judge's own figures; the submission is
not asked.
"""

import threading
from collections.abc import Callable

import torch

from kevin_env.judge.handshake.gate import Drawn
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lease import Lease
from kevin_env.judge.roofline.ceilings import CeilingStore
from kevin_env.judge.roofline.work import find_work
from kevin_env.outcome import Correct
from kevin_env.problem import ProblemError
from kevin_env.roofline import Roofline, Work, roofline_of


class Rooflines:
    """The work of problems on one device, each found once. Safe for threads.

    Args:
        lease: Of the device; held while the reference is counted. Do not hold it.
        ceilings: Of the device.
    """

    def __init__(self, lease: Lease, ceilings: CeilingStore) -> None:
        self._lease = lease
        self._ceilings = ceilings
        self._work: dict[tuple[str, str], Work | None] = {}
        self._lock = threading.Lock()

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
        with self._lock:
            work = self._counted(key, case, draw)
            return (
                outcome
                if work is None
                else outcome.model_copy(update={"roofline": self._held(work, seconds)})
            )

    def _held(self, work: Work, seconds: float) -> Roofline | None:
        try:
            found = roofline_of(work, self._ceilings.of(work), seconds)
            return (
                roofline_of(work, self._ceilings.of(work, again=True), seconds)
                if found.above
                else found
            )
        except torch.OutOfMemoryError:
            return None

    def _counted(self, key: str, case: Case, draw: Callable[[], Drawn]) -> Work | None:
        if (key, case.name) not in self._work:
            try:
                with self._lease.shared():
                    self._work[key, case.name] = _count(case, draw())
            except torch.OutOfMemoryError:  # others may hold what is missing
                return None
        return self._work[key, case.name]


def _count(case: Case, drawn: Drawn) -> Work | None:
    """The work of a case; None where the reference cannot be watched."""
    try:
        return find_work(case, drawn.skeleton, drawn.image.tensors)
    except ProblemError:
        return None
