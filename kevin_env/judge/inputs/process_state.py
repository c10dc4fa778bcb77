"""What a problem's code sets for the whole process, in which the code of other problems runs too.

Each problem has what it would have in a process of its own: what its module sets holds for its
functions and its model, and for nobody else.
"""

import os
import random
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.backends import cudnn, mkldnn

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


@dataclass(frozen=True, eq=False)
class _Setting:
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(owner: Any, name: str) -> _Setting:
    return _Setting(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _deterministic() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _autocast() -> tuple[bool, bool]:
    return torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")


def _set_autocast(enabled: tuple[bool, bool]) -> None:
    for device, each in zip(("cpu", "cuda"), enabled, strict=True):
        torch.set_autocast_enabled(device, each)


def _environment() -> dict[bytes, bytes]:
    return vars(os.environ)["_data"].copy()  # through the mapping itself it takes 70 us


def _set_environment(values: dict[bytes, bytes]) -> None:
    for name in os.environb.keys() - values.keys():
        del os.environb[name]
    os.environb.update(values)


def _set_path(path: list[str]) -> None:
    sys.path[:] = path


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # it also says that what is remembered of warnings holds no longer
    warnings.filters[:] = filters  # type: ignore[index]


def _folder() -> str | None:
    with suppress(OSError):  # it was removed
        return os.getcwd()  # noqa: PTH109 (a path takes four times as long)
    return None


def _go_to(folder: str | None) -> None:
    if folder is not None:
        os.chdir(folder)


_PRODUCTS = ("matmul", "conv", "rnn")


_KEPT = (
    _Setting(torch.get_default_dtype, torch.set_default_dtype),
    _Setting(
        _deterministic,
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    _attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
    _Setting(torch.get_num_threads, torch.set_num_threads),
    _Setting(_autocast, _set_autocast),
    *(_attribute(cudnn, name) for name in ("enabled", "benchmark", "deterministic")),
    _attribute(mkldnn, "enabled"),
    _Setting(_environment, _set_environment),
    _Setting(lambda: list(sys.path), _set_path),
    _Setting(lambda: list(warnings.filters), _set_filters),
    _Setting(_folder, _go_to),
    _Setting(sys.getrecursionlimit, sys.setrecursionlimit),
)
"""What a problem has for itself."""


_TAKEN_BACK = (
    _Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    _Setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    *(
        _attribute(owner, "fp32_precision")
        for owner in (torch.backends, *(getattr(mkldnn, name) for name in _PRODUCTS))
    ),
)
"""What the judge decides for every run, as it does by `guards.precision` for the rest of a GPU's
precision.
"""


class Surroundings:
    """The process as one problem's code is to find it; entered round all of that.

    One thread at a time is inside, and one that is inside may enter again, which costs next to
    nothing. No generator, for the reason that `partners.ours` gives.
    """

    def __init__(self) -> None:
        self._own: dict[_Setting, Any] = {}
        self._outside: dict[_Setting, Any] = {}
        self._depth = 0

    def __enter__(self) -> None:
        RANDOM.acquire()
        try:
            if self._depth == 0:
                self._outside = {each: each.read() for each in (*_KEPT, *_TAKEN_BACK)}
                for each, value in self._own.items():
                    each.write(value)
            self._depth += 1
        except BaseException:
            RANDOM.release()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self._depth -= 1
            if self._depth == 0:
                self._leave()
        finally:
            RANDOM.release()

    def _leave(self) -> None:
        torch.set_default_device(None)  # torch remembers it for this thread
        changed = {
            each: found for each, value in self._outside.items() if (found := each.read()) != value
        }
        for each in changed:
            each.write(self._outside[each])
        self._own = {each: value for each, value in changed.items() if each in _KEPT}


class Generators:
    """Leaves Python's, NumPy's and torch's generators of this process as they were."""

    def __enter__(self) -> None:
        self._states = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def __exit__(self, *error: Any) -> None:
        of_python, of_numpy, of_torch = self._states
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
