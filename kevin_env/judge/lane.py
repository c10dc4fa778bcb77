"""The lane of a device: one submission at a time is on it, in order of arrival.

Builds, contexts and ends of processes happen beside the lane. Everything else that uses the device
takes it: facts, profiles and the lint, too. Judges of several processes share a device by a file
lock, so a judge that dies leaves the lane free.
"""

import fcntl
import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kevin_env.judge.waiting import waiting


class Line:
    """Some places that are taken in order of arrival. Thread-safe, not reentrant.

    Args:
        places: How many there are.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting = deque[threading.Event]()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def take(self) -> None:
        """Waits for a place."""
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._waiting.append(turn)
        try:
            turn.wait()
        except BaseException:
            with self._lock:
                if not turn.is_set():
                    self._waiting.remove(turn)
                    raise
            self.give_back()
            raise

    def give_back(self) -> None:
        """Gives a place to the first that waits."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


class Lane:
    """The lane of one device. Thread-safe, not reentrant.

    Only the first in the line of a process waits for the file lock, and only once the one before it
    has released it. Another process that waits already gets it first.

    Args:
        device: A name that all processes agree on, such as a GPU's UUID; `cpu` for the processor.
    """

    def __init__(self, device: str) -> None:
        folder = Path(tempfile.gettempdir()) / f"kevin-env-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.file = folder / f"{device}.lane"
        self.line = Line(1)
        self._held = -1

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Waits for the device and holds it inside."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def left(self) -> Iterator[None]:
        """Leaves the lane inside, for others that wait, and enters it again behind them."""
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def _enter(self) -> None:
        self.line.take()
        try:
            self._held = _locked(self.file)
        except BaseException:
            self.line.give_back()
            raise

    def _leave(self) -> None:
        held, self._held = self._held, -1
        if held >= 0:  # otherwise it could not be entered again
            os.close(held)
            self.line.give_back()


def holder_of(file: Path) -> str:
    """Which other process holds a lock, as far as /proc says."""
    with suppress(OSError):
        end = f":{file.stat().st_ino}"
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        held = {line[4] for line in lines if line[1] == "FLOCK" and line[5].endswith(end)}
        if others := held - {str(os.getpid())}:
            return f", held by {', '.join(map(_described, sorted(others)))}"
    return ""


def _described(pid: str) -> str:
    with suppress(OSError):
        process = Path("/proc", pid)
        command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        stopped = (process / "stat").read_text().rpartition(")")[2].split()[0] == "T"
        return f"process {pid}{' (stopped)' * stopped}: {' '.join(command.split())[:100]}"
    return f"process {pid}"


def _locked(file: Path) -> int:
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with waiting(f"the device lock {file}", lambda: holder_of(file)):
                fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        raise
    return fd
