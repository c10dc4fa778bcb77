"""What went wrong in the submission, described as JSON for the judge.

The kind follows from the class of the exception and the state of the device, never from a message's text. All of it
is a claim of an untrusted process: the judge puts it under the stage that it knows the submission was in.
"""

import linecache
import subprocess
import traceback
from collections.abc import Iterator
from typing import Any

import torch

from kevin_env.candidate import cuda

MESSAGE_LIMIT = 4_000
OUTPUT_LIMIT = 64_000
FRAME_LIMIT = 20


def describe(error: BaseException, path: str, device: torch.device | None) -> dict[str, Any]:
    """The failure as a JSON object.

    Args:
        error: What was raised.
        path: The submission's file; only its frames are told.
        device: Where it ran, if a device is in use.
    """
    shown = error.__cause__ if type(error).__name__ == "InterpreterError" and error.__cause__ else error
    return {
        "kind": _kind(error, device),
        "type": _clean(type(shown).__name__),
        "message": _clean(_text(shown))[:MESSAGE_LIMIT],
        "frames": _frames(error, path)[-FRAME_LIMIT:],
        "output": _clean(_compiler_output(error))[-OUTPUT_LIMIT:],
    }


def _kind(error: BaseException, device: torch.device | None) -> str:
    chain = list(_chain(error))
    if any(isinstance(e, subprocess.CalledProcessError) for e in chain):
        return "compiler"
    if any(type(e).__module__.startswith(("triton.compiler", "triton.runtime.errors", "triton.runtime.interpreter"))
           for e in chain):  # fmt: skip
        return "jit"
    if isinstance(error, ImportError) and (error.path or "").endswith(".so"):
        return "link"
    if _lacks_memory(error):
        return "out_of_memory"
    if isinstance(error, SystemExit):
        return "exit"
    if device is not None and device.type == "cuda":
        return cuda.STICKY.get(cuda.context_error(), "exception")
    return "exception"


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, torch.AcceleratorError):  # of a call of CUDA's that is not torch's allocator's
        return getattr(error, "error_code", None) == cuda.OUT_OF_MEMORY
    if isinstance(error, cuda.CudaError):
        return error.code == cuda.OUT_OF_MEMORY
    return isinstance(error, torch.OutOfMemoryError | MemoryError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _frames(error: BaseException, path: str) -> list[list[Any]]:
    """Line, function and source of each frame in the submission's file, outermost first, along the chain of causes."""
    linecache.checkcache(path)
    found: list[list[Any]] = []
    for link in reversed(list(_chain(error))):
        frames = [
            [f.lineno or 0, _clean(f.name), _clean(linecache.getline(path, f.lineno or 0).rstrip())]
            for f in traceback.extract_tb(link.__traceback__)
            if f.filename == path
        ]
        found = frames or found
    return found


def _compiler_output(error: BaseException) -> str:
    for link in _chain(error):
        if isinstance(link, subprocess.CalledProcessError):
            parts = (link.stdout, link.stderr)
            return "\n".join(p.decode(errors="replace") if isinstance(p, bytes) else p for p in parts if p)
    return ""


def _clean(text: str) -> str:
    """Text that JSON in UTF-8 can carry: half a character pair of UTF-16 cannot."""
    return text.encode("utf-8", "replace").decode()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # a submission's exception may fail even at being printed
        return f"(its message failed with {type(broken).__name__})"
