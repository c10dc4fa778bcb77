"""Other processes in the sandbox of the submission: forks, profilers, disassemblers."""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Message = dict[str, Any]
MAX_FILES = 64
STEP = 0.005
"""Seconds between polls."""


def flush() -> None:
    """Flushes Python's and C's buffers, so that the log is complete if the process is killed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the submission may have replaced or closed them
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def read(path: str, limit: int) -> str:
    """The beginning of a file as text; empty if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def run_in_forks(
    functions: Sequence[Callable[[], int]], seconds: float, environment: dict[str, str]
) -> list[int | None]:
    """Runs functions concurrently, each in a fork of this process.

    Returns:
        The result of each: 1 if it raised, negative for a signal, None if it timed out and was
        killed.
    """
    deadline = time.monotonic() + seconds
    pids: list[int] = []
    ended: dict[int, int] = {}
    try:
        for function in functions:
            pids.append(_fork(function, environment))
        while len(ended) < len(pids) and time.monotonic() < deadline:
            ended |= {
                pid: code
                for pid in pids
                if pid not in ended and (code := _code_of(pid)) is not None
            }
            time.sleep(STEP)
    finally:
        for pid in pids:
            kill_session(pid)
            if pid not in ended:
                _reap(pid)
    return [ended.get(pid) for pid in pids]


def _fork(function: Callable[[], int], environment: dict[str, str]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            faulthandler.disable()  # a crash of a fork is not one of this process
            os.environ.update(environment)
            os._exit(function())
        except BaseException:  # the submission may raise anything
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)
    return pid


def _code_of(pid: int) -> int | None:
    """The exit code of a fork; None while it runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # the submission ignores SIGCHLD: the exit code is lost
        return 1
    return os.waitstatus_to_exitcode(status) if done else None


def _reap(pid: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)  # it may not have its own session yet
        os.waitpid(pid, 0)


def kill_session(leader: int) -> None:
    """Kills all processes of a session, by its leader."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def run(command: list[str], seconds: float, environment: dict[str, str], limit: int) -> Message:
    """Runs a program in its own session.

    Args:
        command: The program and its arguments.
        seconds: Then its whole session is killed.
        environment: Variables in addition to those of this process.
        limit: Bytes of output to return.

    Returns:
        `code`, None if it was killed, and `output`, stdout and stderr.

    Raises:
        OSError: if it cannot be started.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        kill_session(process.pid)
        process.wait()
        output.seek(0)
        return {"code": code, "output": output.read(limit).decode("utf-8", "replace")}


class Orders:
    """Orders about programs and files; every public method is one."""

    def run(
        self, command: list[str], seconds: float, environment: dict[str, str], limit: int
    ) -> Message:
        """See `run`."""
        return run(command, seconds, environment, limit)

    def write(self, path: str, text: str) -> Message:
        """Writes a file."""
        Path(path).write_text(text, encoding="utf-8")
        return {}

    def read(self, path: str, limit: int) -> Message:
        """The beginning of a file."""
        return {"text": read(path, limit)}

    def artefacts(self, folder: str) -> Message:
        """Files in a folder that may hold compiled device code, the largest first."""
        patterns = ("*.cubin", "*.so")
        files = {path for each in patterns for path in Path(folder).rglob(each) if path.is_file()}
        of_triton = ("cuda_utils", "__triton_launcher", "launcher")
        kept = [path for path in files if not path.name.startswith(of_triton)]
        largest = sorted(kept, key=lambda path: -path.stat().st_size)[:MAX_FILES]
        return {"files": [str(path) for path in largest]}
