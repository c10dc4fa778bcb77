"""What is done in copies of this process, and what is common to programs that run where the
submission is confined.
"""

import ctypes
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

MOST_FILES = 64
STEP = 0.005
"""Seconds between two looks at what is waited for."""


def flush() -> None:
    """Python's buffers and C's, so that a log is whole when the process is killed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the submission may have replaced or closed them
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def read(path: str, limit: int) -> str:
    """The beginning of a file as text; empty when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def in_a_fork(work: Callable[[], int], seconds: float, environment: dict[str, str]) -> int | None:
    """Does something in a copy of this process, which has imported what takes long. As `in_forks`
    for one.
    """
    return in_forks([work], seconds, environment)[0]


def in_forks(
    works: Sequence[Callable[[], int]], seconds: float, environment: dict[str, str]
) -> list[int | None]:
    """Does several things at once, each in a copy of this process.

    Returns:
        What each gives, 1 when it raises, negative for a signal; None for those that were killed
        for being late.
    """
    deadline = time.monotonic() + seconds
    copies: list[int] = []
    ended: dict[int, int] = {}
    try:
        for work in works:
            copies.append(_fork(work, environment))
        while len(ended) < len(copies) and time.monotonic() < deadline:
            ended |= {
                pid: code
                for pid in copies
                if pid not in ended and (code := _code_of(pid)) is not None
            }
            time.sleep(STEP)
    finally:
        for pid in copies:
            kill_session(pid)
            if pid not in ended:
                _reap(pid)
    return [ended.get(pid) for pid in copies]


def _fork(work: Callable[[], int], environment: dict[str, str]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            faulthandler.disable()  # a crash of a copy is not one of this process
            os.environ.update(environment)
            os._exit(work())
        except BaseException:  # the boundary round the submission
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)
    return pid


def _code_of(pid: int) -> int | None:
    """How a copy ended; None while it runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except (
        ChildProcessError
    ):  # the submission has the kernel take its children away, and nobody knows how they ended
        return 1
    return os.waitstatus_to_exitcode(status) if done else None


def _reap(pid: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)  # it may have no session of its own yet
        os.waitpid(pid, 0)


def artefacts(folder: Path) -> list[str]:
    """Compiled device code in a folder: cubins, PTX, and libraries that may hold some; the largest
    first.
    """
    found = {
        path
        for pattern in ("*.cubin", "*.so", "*.ptx")
        for path in folder.rglob(pattern)
        if path.is_file()
    }
    of_triton = ("cuda_utils", "__triton_launcher", "launcher")
    kept = [path for path in found if not path.name.startswith(of_triton)]
    return [str(path) for path in sorted(kept, key=lambda path: -path.stat().st_size)[:MOST_FILES]]


def kill_session(leader: int) -> None:
    """Kills all processes of a session that a process began."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
