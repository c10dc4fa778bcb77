"""The process around a problem's code: its settings, the lock for its generators, its errors.

All problems share their settings. Code that changes one is refused when it first runs; generators
may be seeded, since the judge seeds them again before each draw.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch

from kevin_env.problem import ProblemError

T = TypeVar("T")

RANDOM = threading.RLock()
"""Held while a problem's code runs: all threads share torch's generators and precision flags."""

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


def generators(device: torch.device) -> list[torch.Tensor]:
    """The state of torch's default generators."""
    return [
        torch.get_rng_state(),
        *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else []),
    ]


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
            if "Torch not compiled with CUDA" in what or "Found no NVIDIA driver" in what:
                what = "it names a CUDA device; name none, so that it runs on the judge's device"
            text = f"{self.problem}: its reference fails in {self.place}: {what}"
            raise ProblemError(text) from error


_ATTRIBUTES = (
    "utils.deterministic.fill_uninitialized_memory", "backends.mkldnn.enabled",
    "backends.cudnn.enabled", "backends.cudnn.benchmark", "backends.cudnn.deterministic",
    "backends.fp32_precision", "backends.cuda.matmul.fp32_precision",
    "backends.cudnn.conv.fp32_precision", "backends.cudnn.rnn.fp32_precision",
    "backends.mkldnn.matmul.fp32_precision", "backends.mkldnn.conv.fp32_precision",
    "backends.mkldnn.rnn.fp32_precision",
)  # fmt: skip


def _attribute(path: str) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, torch)
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


def _environment() -> dict[str, str]:
    """Without what torch's compilers set when they are first used."""
    own = ("TORCHINDUCTOR_", "TRITON_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def _set_environment(values: dict[str, str]) -> None:
    for name in _environment().keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


def _folder() -> Path | None:
    with suppress(OSError):  # the folder was removed
        return Path.cwd()
    return None


_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's default device": (torch.get_default_device, lambda _: torch.set_default_device(None)),
    "torch's deterministic mode": (
        torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode,
    ),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's gradient mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "autocast": (
        lambda: [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        lambda values: list(map(torch.set_autocast_enabled, ("cpu", "cuda"), values)),
    ),
    "os.environ": (_environment, _set_environment),
    "sys.path": (lambda: list(sys.path), lambda path: sys.path.__setitem__(slice(None), path)),
    "the working folder": (_folder, lambda folder: folder and os.chdir(folder)),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    **{f"torch.{path}": _attribute(path) for path in _ATTRIBUTES},
}  # fmt: skip
"""By name: how each is read and set. Filters of warnings are not among them: imports add some."""


def refusing_changes(call: Callable[[], T], problem: str, file: str) -> T:
    """What a problem's code returns. Its settings are as before, whatever happens.

    Hold `RANDOM`.

    Args:
        call: Runs the code. If it changes a setting, it runs once more, to find the line.
        problem: The problem's name, for errors.
        file: The file name that the code was compiled with.

    Raises:
        ProblemError: if it changes a setting.
    """
    before = {name: read() for name, (read, _) in _SETTINGS.items()}
    try:
        result = call()
        changed = _restored(before)
        if not changed:
            return result
        line = _line_of(call, file, changed, before[changed])
    finally:
        _restored(before)
    where = f"line {line}" if line else "its code"
    raise ProblemError(f"{problem}: {where} changes {changed}; a problem may only set seeds")


def _restored(values: dict[str, Any]) -> str:
    """Sets all settings back; returns the first that had another value, or an empty string."""
    changed = [name for name, value in values.items() if _SETTINGS[name][0]() != value]
    for name in changed:
        _SETTINGS[name][1](values[name])
    return next(iter(changed), "")


def _line_of(call: Callable[[], object], file: str, name: str, before: Any) -> int:
    """The line of a file that changes a setting when it runs; 0 if it does not do so again."""
    last = found = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal last, found
        if frame.f_code.co_filename != file:
            return None
        if not found and _SETTINGS[name][0]() != before:
            found = last
        last = frame.f_lineno
        return trace

    tracer = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(Exception):  # such as of code that cannot run twice
            call()
    finally:
        sys.settrace(tracer)
    return found
