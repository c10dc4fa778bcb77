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


def judges_own(device: str, allowed: Collection[int]) -> int | None:
    """The processor that is the judge's alone; each GPU's has another one. None where there is none to spare.

    Args:
        device: `cpu` or `cuda:0`.
        allowed: The processors that may be used.
    """
    kind, _, place = device.partition(":")
    if kind != "cuda" or len(allowed) < LEAST:
        return None
    return sorted(allowed)[-1 - int(place or 0) % (len(allowed) // 2)]


def timed_on(device: str, allowed: Collection[int]) -> int | None:
    """The processor of those who are timed on a GPU, far from the judge's; arguments as there."""
    if judges_own(device, allowed) is None:
        return None
    quarter = max(1, len(allowed) // 4)
    return sorted(allowed)[quarter + int(device.partition(":")[2] or 0) % quarter]


def leave_to_judge(device: str) -> None:
    """Keeps the calling process, and what it will start, off the processors that a device's judge times on."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed - {judges_own(device, allowed), timed_on(device, allowed)})


@contextmanager
def together(device: str, keepers: Iterable[int]) -> Iterator[None]:
    """Has candidates that take turns run on the processor of those who are timed: their main threads, which launch.

    Args:
        device: As there.
        keepers: Processes whose descendants they are. They stay elsewhere: on one processor with a candidate that spins
            until its next order, what is to stop it has to wait for it.
    """
    place, before = timed_on(device, os.sched_getaffinity(0)), dict[int, set[int]]()
    if place is None:
        yield
        return
    for pid in [each for keeper in keepers for each in descendants(keeper)]:
        with suppress(OSError):  # one that is gone is noticed elsewhere
            before[pid] = os.sched_getaffinity(pid)
            os.sched_setaffinity(pid, {place})
    try:
        yield
    finally:
        for pid, allowed in before.items():
            with suppress(OSError):
                os.sched_setaffinity(pid, allowed)


@contextmanager
def on_its_own(device: str) -> Iterator[None]:
    """Has the calling thread run on its judge's processor."""
    allowed = os.sched_getaffinity(0)
    own = judges_own(device, allowed)
    if own is not None:
        os.sched_setaffinity(0, {own})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
