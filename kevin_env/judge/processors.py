"""The processors on which a GPU's judge and who is timed run meanwhile, and no candidate else that does not ask to.

The judge spins on its own. A candidate beside it, which the scheduler likes to wake near to it, launches more slowly
for as long as they share a core: by 20 to 100 us a call on a machine that packs them. Submission and partners, of which
one runs at a time, have another together, as where it is decides how soon they wake up and answer: on an H200 gated
calls varied by 5 to 73 us from one trial to the next while they were anywhere, and by 8 to 21 us so.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from kevin_env.judge.usage import descendants

LEAST = 8
"""On fewer processors than these none can be spared."""


def judges_own(place: int | None, allowed: Collection[int]) -> int | None:
    """The processor that is the judge's alone; each GPU's has another one. None where there is none to spare.

    Args:
        place: The GPU's among those of the host, whatever CUDA calls it here; None is a CPU.
        allowed: The processors that may be used.
    """
    if place is None or len(allowed) < LEAST:
        return None
    return sorted(allowed)[-1 - place % (len(allowed) // 2)]


def timed_on(place: int | None, allowed: Collection[int]) -> int | None:
    """The processor of those who are timed on a GPU, far from the judge's; arguments as there."""
    if place is None or judges_own(place, allowed) is None:
        return None
    quarter = max(1, len(allowed) // 4)
    return sorted(allowed)[quarter + place % quarter]


def leave_to_judge(place: int | None) -> None:
    """Keeps the calling process, and what it will start, off the processors that a device's judge times on."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed - {judges_own(place, allowed), timed_on(place, allowed)})


@contextmanager
def together(place: int | None, keepers: Iterable[int]) -> Iterator[None]:
    """Has candidates that take turns run on the processor of those who are timed: their main threads, which launch.

    Args:
        place: As there.
        keepers: Processes whose descendants they are. They stay elsewhere: on one processor with a candidate that spins
            until its next order, what is to stop it has to wait for it.
    """
    processor, before = timed_on(place, os.sched_getaffinity(0)), dict[int, set[int]]()
    if processor is None:
        yield
        return
    for pid in [each for keeper in keepers for each in descendants(keeper)]:
        with suppress(OSError):  # one that is gone is noticed elsewhere
            before[pid] = os.sched_getaffinity(pid)
            os.sched_setaffinity(pid, {processor})
    try:
        yield
    finally:
        for pid, allowed in before.items():
            with suppress(OSError):
                os.sched_setaffinity(pid, allowed)


@contextmanager
def on_its_own(place: int | None) -> Iterator[None]:
    """Has the calling thread run on its judge's processor."""
    allowed = os.sched_getaffinity(0)
    own = judges_own(place, allowed)
    if own is not None:
        os.sched_setaffinity(0, {own})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
