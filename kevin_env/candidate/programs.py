"""Processes beside the submission, in its sandbox: forks of this process, and programs such as
profilers and disassemblers.

A program may stop at points until it may go on. The two sides communicate by files in the
program's folder, since descriptors may not outlive a tool that starts it. A submission can create
such files, too: it only continues sooner, or seems further along than it is. Each step has a
deadline in any case.
"""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Message = dict[str, Any]
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


def hold(folder: Path, point: str) -> None:
    """In the program: says that it has come to a point, and waits for the word to go on."""
    (folder / f"at-{point}").touch()
    while not (folder / f"past-{point}").exists():
        time.sleep(STEP)


class Program:
    """A command in a session of its own, beside this process.

    Args:
        command: The program and its arguments.
        environment: Variables besides those of this process.

    Raises:
        OSError: when it cannot be started.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._output = Path(f"output-{time.monotonic_ns()}")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def follow(self, seconds: float, limit: int, past: str = "", to: str = "") -> Message:
        """Lets it go past a point and waits until it is at the next one, ends, or is late.

        Args:
            seconds: After which all of its session is killed.
            limit: Bytes of output that are told.
            past: The point that it may leave; empty when it is at none.
            to: The point that is waited for; empty for its end.

        Returns:
            `at`, the point; or how it ended: `code`, None when it was killed for being late, and
            `output`, stdout and stderr together.
        """
        if past:
            Path(f"past-{past}").touch()
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None and time.monotonic() < deadline:
            if to and Path(f"at-{to}").exists():
                return {"at": to}
            time.sleep(STEP)
        kill_session(self._process.pid)
        self._process.wait()
        text = read(str(self._output), limit)
        self._output.unlink(missing_ok=True)
        return {"code": code, "output": text}


class Orders:
    """Orders to a candidate that are about programs and files; every public method is one."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}

    def begin(self, name: str, command: list[str], environment: dict[str, str]) -> Message:
        """Starts a program under a name; others may run meanwhile."""
        self._programs[name] = Program(command, environment)
        return {}

    def follow(
        self, name: str, seconds: float, limit: int, past: str = "", to: str = ""
    ) -> Message:
        """See `Program.follow`."""
        return self._programs[name].follow(seconds, limit, past, to)

    def run(
        self, command: list[str], seconds: float, environment: dict[str, str], limit: int
    ) -> Message:
        """Runs a program to its end; see `Program.follow`."""
        return Program(command, environment).follow(seconds, limit)

    def write(self, path: str, text: str) -> Message:
        """Writes a file."""
        Path(path).write_text(text, encoding="utf-8")
        return {}

    def read(self, path: str, limit: int) -> Message:
        """The beginning of a file."""
        return {"text": read(path, limit)}

    def artefacts(self, folder: str) -> Message:
        """Files with machine code for the device that lie in a folder."""
        return {"files": artefacts(Path(folder))}
