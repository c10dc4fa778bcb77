"""Pages that fault before and behind tensors on a CPU, so that an index out of bounds is found.

A small library replaces torch's allocator. It is compiled once and cached. Without a compiler
there are no such pages.
"""

import ctypes
import hashlib
import os
import shlex
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

SECONDS = 60.0
"""For compiling the library, which takes two seconds."""
_SOURCE = Path(__file__).with_suffix(".cpp")
_loaded: list[ctypes.CDLL] = []


def load(folder: Path) -> None:
    """Replaces torch's allocator in this process and its forks; nothing is guarded yet.

    Args:
        folder: Where the library is cached. Only a file of the user's own counts.
    """
    if not _loaded and (library := _library(folder)) is not None:
        with suppress(OSError, AttributeError):
            loaded = ctypes.CDLL(str(library))
            loaded.guard_damaged.restype = ctypes.c_size_t
            loaded.guard_install()
            _loaded.append(loaded)


def report_to(descriptor: int) -> None:
    """Writes a line to the descriptor if such a page is accessed; then the process crashes.

    Such as `Guard: wrote byte 4000 of 4000`. Call it after `faulthandler.enable`.
    """
    for library in _loaded:
        library.guard_report_to(descriptor)


@contextmanager
def guarded() -> Iterator[None]:
    """Inside, tensors are allocated between such pages, and hold `POISON` at first.

    Raises:
        IndexError: at the end, if memory between a tensor and such a page was written.
    """
    at = ctypes.c_ssize_t()
    for library in _loaded:
        library.guard_enable(1)
    try:
        yield
    finally:
        for library in _loaded:
            library.guard_enable(0)
    for library in _loaded:
        if size := library.guard_damaged(ctypes.byref(at)):
            raise IndexError(f"out of bounds: wrote byte {at.value} of a tensor of {size} bytes")


def _library(folder: Path) -> Path | None:
    """The library; None if it cannot be compiled."""
    key = f"{torch.__version__} {sysconfig.get_platform()} {_SOURCE.read_text(encoding='utf-8')}"
    path = folder / f"guard-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    with suppress(OSError):
        if path.stat().st_uid == os.getuid():
            return path
    with suppress(OSError, subprocess.SubprocessError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / path.name
            subprocess.run(
                [*shlex.split(os.environ.get("CXX", "g++")), str(_SOURCE), "-o", built, *_flags()],
                stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=SECONDS,
            )  # fmt: skip
            return built.replace(path)
    return None


def _flags() -> list[str]:
    torch_folder = Path(torch.__file__).parent
    places = [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}", "-lc10"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    return ["-O1", "-std=c++20", "-fPIC", "-shared", abi, *places]
