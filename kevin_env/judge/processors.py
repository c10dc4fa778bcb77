"""The processor on which a GPU's judge waits while it times, where no candidate runs that does not ask to.

The judge spins there. A candidate beside it, which the scheduler likes to wake near to it, launches more slowly for as
long as they share a core: by 20 to 100 us a call on a machine that packs them.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

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


def leave_to_judge(device: str) -> None:
    """Keeps the calling process, and what it will start, off the processor of a device's judge."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed - {judges_own(device, allowed)})


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
