"""How long a candidate's answer is waited for."""

from collections.abc import Callable
from dataclasses import dataclass

LOOK = 0.5
"""Seconds without an answer after which it is looked at whether the candidate runs. Shorter calls
cost nothing.
"""


@dataclass(frozen=True)
class Patience:
    """For an order to a submission.

    Attributes:
        seconds: For so long it may run. Seconds that its processes wait for a processor do not
            count.
        usual: What a later call may take. A first call may take no longer once it has launched all
            its work, or while its processes only wait: on a GPU a kernel may have to be loaded
            behind one that hangs.
        pause: Called after each `LOOK`, to let others go first. Its seconds do not count.
    """

    seconds: float
    usual: float
    pause: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Ran:
    """What processes have done so far: seconds on a processor, and seconds ready to run without
    one; over threads.
    """

    ran: float
    waited: float


def starved(elapsed: float, before: Ran, after: Ran) -> float:
    """For how many of the elapsed seconds processes were ready and none of them had a processor.

    Others of them may have run meanwhile, and threads that wait for each other's turn are no
    evidence of other load: so it is no more than what is left of the time when all that they ran is
    taken away.
    """
    return max(0.0, min(after.waited - before.waited, elapsed - (after.ran - before.ran), elapsed))
