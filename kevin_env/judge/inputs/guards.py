"""What stands round every run of a problem's own code: its seed, its precision, and whose failure
it is.
"""

import threading
from contextlib import suppress
from typing import Any

import torch

from kevin_env.candidate.seeding import reseed
from kevin_env.problem import ProblemError

RANDOM = threading.RLock()
"""Held while torch's default generators and precision flags, which are the process's, are set for
one run.
"""


_NO_MEMORY = ("out of memory", "ALLOC_FAILED", "allocate memory", "not enough memory")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an error says that there was no memory: not all libraries that torch calls say so by
    its own class.
    """
    told = isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    return told or isinstance(error, torch.OutOfMemoryError | MemoryError)


def let_go() -> None:
    """Releases `RANDOM` as often as this thread holds it: what was cut short may not have."""
    with suppress(RuntimeError):
        while True:
            RANDOM.release()


class seeded:
    """Seeds torch's generators and Python's, and makes `device` the default for new tensors; one
    thread at a time.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self.seed = seed
        self.device = device

    def __enter__(self) -> None:
        RANDOM.acquire()
        try:
            reseed(self.seed)
            self.device.__enter__()
        except BaseException:
            RANDOM.release()
            raise

    def __exit__(self, *error: Any) -> None:
        self.device.__exit__(*error)
        RANDOM.release()


class precision:
    """Lets float32 matrix products and convolutions of the reference use TF32, or keeps them from
    it.
    """

    def __init__(self, precision: str) -> None:
        self.allowed = precision == "tf32"

    def __enter__(self) -> None:
        RANDOM.acquire()
        try:
            torch.backends.cuda.matmul.allow_tf32 = self.allowed
            torch.backends.cudnn.allow_tf32 = self.allowed
        except BaseException:
            RANDOM.release()
            raise

    def __exit__(self, *error: Any) -> None:
        RANDOM.release()


class reference_code:
    """Turns whatever the problem's own code raises into a ProblemError that names the place.

    All but a lack of memory, which is no fault of it, and torch's OutOfMemoryError then.
    """

    def __init__(self, problem: str, place: str) -> None:
        self.problem = problem
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ProblemError | torch.OutOfMemoryError):
            return
        if lacks_memory(error):
            raise torch.OutOfMemoryError(f"{type(error).__name__}: {error}") from error
        if isinstance(error, Exception | SystemExit):
            text = f"{self.problem}: its reference fails in {self.place}: {type(error).__name__}: {error}"
            raise ProblemError(text) from error
