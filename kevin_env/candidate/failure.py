"""Describes a failure of the submission as JSON for the judge.

The kind follows from the class of the exception and the state of the device, never from a message.
All of it is a claim of an untrusted process: the judge files it under the stage that it knows the
submission was in.
"""

import ctypes
import errno
import functools
import linecache
import os
import re
import subprocess
import traceback
from collections.abc import Iterator
from typing import Any

import torch

from kevin_env.candidate import cuda
from kevin_env.languages import LANGUAGES

MESSAGE_LIMIT = 4_000
OUTPUT_LIMIT = 64_000
FRAME_LIMIT = 20
Frame = tuple[int, str, str]
"""Line, function and source of a frame."""
_NO_CUDA = (
    "CUDA is not available: this task runs on the CPU. Write the kernels in C++, or in Triton, "
    "which is interpreted."
)
_NEEDS_CUDA = ("_lazy_init", "_join_cuda_home", "_create_driver")
"""Functions of torch and Triton that raise without a GPU, or without a compiler for one."""
_COMPILERS = tuple(place for each in LANGUAGES.values() for place in each.compilers)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TENSOR = re.compile(r"\btensor\(\[[^()]*(?:\([^()]*\)[^()]*)*(?:\)|$)")


def describe(error: BaseException, path: str, device: torch.device | None) -> dict[str, Any]:
    """The failure as a JSON object.

    Args:
        error: What was raised.
        path: The submission's file; only its frames are reported.
        device: The device in use, if any.
    """
    kind = _kind(error, device)  # first, before `errno` may change
    unwrapped = _unwrapped(error)
    shown = next((each for each in reversed(unwrapped) if _text(each)), unwrapped[-1])
    return {
        "kind": kind,
        "type": _clean(type(shown).__name__),
        "message": _clean(
            _NO_CUDA if _needs_cuda(shown) else _TENSOR.sub("tensor(...)", _text(shown))
        )[:MESSAGE_LIMIT],
        "frames": _frames(error, path)[-FRAME_LIMIT:],
        "output": _clean(_compiler_output(error))[-OUTPUT_LIMIT:],
    }


def _kind(error: BaseException, device: torch.device | None) -> str:
    chain = list(_chain(error))
    if any(isinstance(e, subprocess.CalledProcessError) for e in chain):
        return "compiler"
    of_triton = ("triton.compiler", "triton.runtime.errors", "triton.runtime.interpreter")
    if any(type(e).__module__.startswith(of_triton) or _while_compiling(e) for e in chain):
        return "jit"
    if isinstance(error, ImportError) and (error.path or "").endswith(".so"):
        return "link"
    if _lacks_memory(error, device):
        return "out_of_memory"
    if isinstance(error, SystemExit):
        return "exit"
    if device is not None and device.type == "cuda":
        return cuda.STICKY.get(cuda.context_error(), "exception")
    return "exception"


def _while_compiling(error: BaseException) -> bool:
    """Whether it was raised inside the compiler of a language."""
    return any(
        f"{frame.f_code.co_filename}:{frame.f_code.co_name}".endswith(_COMPILERS)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def clear_errno() -> None:
    """Resets `errno`; call it before code whose failure is described."""
    _errno().contents.value = 0


@functools.cache
def _errno() -> Any:
    place = ctypes.CDLL(None).__errno_location
    place.restype = ctypes.POINTER(ctypes.c_int)
    return place()


def _lacks_memory(error: BaseException, device: torch.device | None) -> bool:
    if isinstance(error, torch.AcceleratorError):  # not from torch's allocator
        return getattr(error, "error_code", None) == cuda.OUT_OF_MEMORY
    if isinstance(error, cuda.CudaError):
        return error.code == cuda.OUT_OF_MEMORY
    if type(error) is RuntimeError and device is None:  # torch raises it if malloc fails
        return _errno().contents.value == errno.ENOMEM
    return isinstance(error, torch.OutOfMemoryError | MemoryError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _unwrapped(error: BaseException) -> list[BaseException]:
    """An error of Triton and its causes: the kernel's own error comes last.

    Its interpreter wraps what a kernel raises, and its compiler an error in a function that the
    kernel calls.
    """
    chain = [error]
    while (cause := chain[-1].__cause__) and len(chain) < 10:
        called = type(chain[-1]).__module__.startswith("triton.compiler") and not getattr(
            chain[-1], "error_message", True
        )
        if not called and type(chain[-1]).__name__ != "InterpreterError":
            break
        chain.append(cause)
    return chain


def _needs_cuda(error: BaseException) -> bool:
    """Whether torch or Triton raised it for lack of CUDA."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return (
        os.environ.get("CUDA_VISIBLE_DEVICES") == ""
        and bool(frames)
        and frames[0].name in _NEEDS_CUDA
    )


def _frames(error: BaseException, path: str) -> list[Frame]:
    """Frames in the submission's file along the causes, outermost first, each line once."""
    linecache.checkcache(path)
    *outer, inner = _unwrapped(error)
    frames: list[Frame] = []
    for link in reversed(list(_chain(inner))):
        frames = _own_frames(link, path) or frames
    frames = (
        [frame for link in outer for frame in _own_frames(link, path)]
        + frames
        + _compiled(error, path)
        + _named(inner, path)
    )
    return [*reversed(dict.fromkeys(reversed(frames)))]  # the last of each has the error


def _own_frames(error: BaseException, path: str) -> list[Frame]:
    return [
        _frame(f.lineno or 0, f.name, path)
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename == path and (f.lineno != 1 or f.name == "<module>")  # generated code
    ]


def _compiled(error: BaseException, path: str) -> list[Frame]:
    """Where Triton's compiler stopped: its errors hold the kernel's source and a node of it."""
    for link in reversed(list(_chain(error))):
        source, line = (
            getattr(link, "src", None),
            getattr(getattr(link, "node", None), "lineno", None),
        )
        if (
            type(link).__module__.startswith("triton.compiler")
            and isinstance(source, str)
            and isinstance(line, int)
        ):
            head = source.split("\n", 1)[0].strip()
            starts = [
                number
                for number, text in enumerate(linecache.getlines(path))
                if text.strip() == head
            ]
            if starts:  # else it is in a function of the language's library
                return [_frame(starts[0] + line, head.removeprefix("def ").split("(")[0], path)]
    return []


def _named(error: BaseException, path: str) -> list[Frame]:
    """The line that a compiler names in its message, such as Helion's."""
    lines = re.findall(rf'{re.escape(path)}(?:"?, line |:)(\d{{1,6}})', _text(error))
    return [_frame(int(lines[-1]), "", path)] if lines and _while_compiling(error) else []


def _frame(line: int, name: str, path: str) -> Frame:
    return line, _clean(name), _clean(linecache.getline(path, line).rstrip())


def _compiler_output(error: BaseException) -> str:
    for link in _chain(error):
        if isinstance(link, subprocess.CalledProcessError):
            parts = (link.stdout, link.stderr)
            return "\n".join(
                p.decode(errors="replace") if isinstance(p, bytes) else p for p in parts if p
            )
    return ""


def _clean(text: str) -> str:
    """Replaces what UTF-8 cannot encode, such as lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _text(error: BaseException) -> str:
    try:
        return _COLOR.sub("", str(error)).strip("\n")
    except Exception as broken:  # a submission's exception may fail when printed
        return f"(its message failed with {type(broken).__name__})"
