"""Timed answers whose outputs are compared later, when the device is no longer held alone.

Inputs and outputs lie in memory of the judge's own, so that nothing a submission does meanwhile
changes what is found. They are compared in the order in which they were given. Nothing is told of a
submission before all of them are.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from kevin_env.judge.device import share_of_free
from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.gate import Drawn
from kevin_env.judge.lease import Lease
from kevin_env.judge.stopwatch import Stopwatch
from kevin_env.judge.trial import Trial
from kevin_env.outcome import Incorrect

SHARE = {"cuda": 0.2, "cpu": 0.05}
"""Of the memory that is free, by device: what may wait. What does not fit is compared while nobody
else has it.
"""
STAY = 0.02
"""Seconds for which answers are compared before others are let go first: as long as some calls that
are screened. With one answer at a time, a submission would be told of only after dozens of others
had been timed.
"""


class Wrong(Exception):
    """A timed call gave a wrong answer."""

    def __init__(self, outcome: Incorrect) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Unverified:
    """Answers of one submission that are still to be compared.

    Args:
        trial: Of the submission; its case stays the same until all is compared.
        budget: Bytes that may wait; by default a share of the memory that is free now.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        self._budget = share_of_free(SHARE, trial.bench.device) if budget is None else budget
        self._waiting: deque[tuple[Answer, Drawn]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def held(self) -> int:
        """Bytes of the inputs and outputs that wait."""
        return sum(drawn.image.end + answer.bytes for answer, drawn in self._waiting)

    def add(self, answer: Answer, drawn: Drawn) -> None:
        """Has an answer compared later; where too much waits, compares what waits longest.

        Raises:
            Wrong: when one that is compared now is wrong.
        """
        self._waiting.append((answer, drawn))
        while self.held > self._budget:
            self.compare(until=lambda: True)

    def compare(self, until: Callable[[], bool] = lambda: False) -> None:
        """Compares one answer after the other, until something holds after one of them or none is
        left.

        Raises:
            Wrong: at the first one that is wrong; the others are let go of.
        """
        while self._waiting:
            answer, drawn = self._waiting.popleft()
            wrong = self._trial.check(answer, drawn)
            if wrong is not None:
                self._waiting.clear()
                raise Wrong(wrong)
            if until():
                return

    def compare_beside_others(self, lease: Lease, watch: Stopwatch) -> None:
        """Compares all under the shared lease; now and then those are let go first who want the
        device alone.

        Raises:
            Wrong: as `compare`.
        """
        while self._waiting:
            with ExitStack() as held:
                with watch("queue"):
                    held.enter_context(lease.shared())
                with watch("verify"):
                    end = time.monotonic() + STAY
                    self.compare(until=partial(_is_due, lease, end))


def _is_due(lease: Lease, end: float) -> bool:
    """Whether others are to be let go first."""
    return time.monotonic() >= end and lease.wanted()
