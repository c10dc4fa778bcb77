"""The process around a problem's code: settings, seeds, precision, attribution of errors.

Each problem finds the settings that it would have in a separate process: what its module sets
holds for its functions and its model, and for no other problem.
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

from kevin_env.problem import ProblemError

RANDOM = threading.RLock()
"""Held while torch's global generators and precision flags are set for a run."""

_NO_MEMORY = ("out of memory", "ALLOC_FAILED", "allocate memory", "not enough memory")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an error means a lack of memory; not all libraries of torch have a class for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def set_precision(precision: str) -> None:
    """Allows or forbids TF32 in float32 products and convolutions of the reference.

    Hold `RANDOM`.
    """
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


class reference_code:
    """Converts exceptions of the problem's code into a ProblemError that names the place.

    A lack of memory is not the problem's fault, and becomes torch.OutOfMemoryError.
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
            what = f"{type(error).__name__}: {error}"
            text = f"{self.problem}: its reference fails in {self.place}: {what}"
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
    return vars(os.environ)["_data"].copy()  # the mapping itself takes 70 us


def _set_environment(values: dict[bytes, bytes]) -> None:
    for name in os.environb.keys() - values.keys():
        del os.environb[name]
    os.environb.update(values)


def _set_path(path: list[str]) -> None:
    sys.path[:] = path


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # also invalidates the registries of warnings already shown
    warnings.filters[:] = filters  # type: ignore[index]


def _folder() -> str | None:
    with suppress(OSError):  # the folder was removed
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
"""What each problem has for itself."""

_TAKEN_BACK = (
    _Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    _Setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    *(
        _attribute(owner, "fp32_precision")
        for owner in (torch.backends, *(getattr(mkldnn, name) for name in _PRODUCTS))
    ),
)
"""What the judge resets after every run; `set_precision` sets the rest of a GPU's precision."""


class ProcessState:
    """The settings of the process for one problem's code; enter it around all of that code.

    One thread at a time is inside, and may enter again at little cost. Not a generator, for the
    reason given in `baselines.as_judge_error`.
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
        torch.set_default_device(None)  # torch stores it per thread
        changed = {
            each: now for each, value in self._outside.items() if (now := each.read()) != value
        }
        for each in changed:
            each.write(self._outside[each])
        self._own = {each: value for each, value in changed.items() if each in _KEPT}


class Generators:
    """Restores the state of Python's, NumPy's and torch's random generators on exit."""

    def __enter__(self) -> None:
        self._states = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def __exit__(self, *error: Any) -> None:
        of_python, of_numpy, of_torch = self._states
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
