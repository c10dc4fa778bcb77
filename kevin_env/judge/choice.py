"""Which devices a choice such as `cuda:0,1` means, and which of them gets the next piece of work. Without CUDA."""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

DEVICES = r"auto|cpu|cuda(:\d+(,\d+)*)?"
"""What a choice of devices looks like, as a regular expression."""


def device_names(choice: str) -> tuple[str, ...]:
    """The devices that a choice means: `auto` is the first GPU where there is one, `cuda:0,1` are two.

    What is no choice is given back as it is, for the judge to refuse.
    """
    if choice == "auto":
        return ("cuda:0",) if gpu_present() else ("cpu",)
    if choice == "cuda":
        return ("cuda:0",)
    kind, _, numbers = choice.partition(":")
    return tuple(f"{kind}:{number}" for number in dict.fromkeys(numbers.split(","))) if numbers else (choice,)


def gpu_present() -> bool:
    """Whether the kernel shows an NVIDIA device that may be used; finds out without CUDA."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1") and any(Path("/dev").glob("nvidia[0-9]*"))


class Balance:
    """Who has how much to do. Safe to use from many threads."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def take(self, names: Sequence[str], problem: str) -> str:
        """The one with the least under way, and of those rather one that has had it before; say `done` in the end."""
        with self._lock:
            name = min(names, key=lambda each: (self._under_way[each], (each, problem) not in self._known))
            self._under_way[name] += 1
            self._known.add((name, problem))
            return name

    def done(self, name: str) -> None:
        """One piece of work less."""
        with self._lock:
            self._under_way[name] -= 1
