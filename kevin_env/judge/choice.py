"""Which devices a choice such as `cuda:0,1` means, and which of them gets the next piece of work.
Without CUDA.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

DEVICES = r"auto|cpu|cuda(:\d+(,\d+)*)?"
"""What a choice of devices looks like, as a regular expression."""


def device_names(choice: str) -> tuple[str, ...]:
    """The devices that a choice means: `auto` is the first GPU where there is one, `cuda:0,1` are
    two.

    What is no choice is given back as it is, for the judge to refuse.
    """
    if choice == "auto":
        return ("cuda:0",) if gpu_present() else ("cpu",)
    if choice == "cuda":
        return ("cuda:0",)
    kind, _, numbers = choice.partition(":")
    return (
        tuple(f"{kind}:{number}" for number in dict.fromkeys(numbers.split(",")))
        if numbers
        else (choice,)
    )


def gpu_present() -> bool:
    """Whether the kernel shows an NVIDIA device that may be used; finds out without CUDA."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1") and any(
        Path("/dev").glob("nvidia[0-9]*")
    )


REST = 60.0
"""Seconds for which a device whose judge has failed gets nothing while there is another; twice as
long each time it fails again.
"""


class Balance:
    """Who has how much to do. Safe to use from many threads.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._under_way: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def take(self, names: Sequence[str], problem: str) -> str:
        """The one with the least under way, and of those rather one that has had it before; say
        `done` in the end.

        One that fails is soon done, and would have the least: it rests for a while.
        """
        with self._lock:
            now = self._clock()
            ranks = {
                each: (
                    now < self._rests.get(each, now),
                    self._under_way[each],
                    (each, problem) not in self._known,
                )
                for each in names
            }
            name = min(names, key=ranks.__getitem__)
            self._under_way[name] += 1
            self._known.add((name, problem))
            return name

    def done(self, name: str, failed: bool = False) -> None:
        """One piece of work less; whether the judge, not the submission, failed at it."""
        with self._lock:
            self._under_way[name] -= 1
            now = self._clock()
            if not failed:
                self._failures[name] = 0
            elif now >= self._rests.get(name, now):  # else it is one of many that failed together
                self._rests[name] = now + REST * 2 ** self._failures[name]
                self._failures[name] += 1
