"""A control group for each candidate, where one can be made: the kernel counts all its memory.

It is made below the judge's own group, so the judge's limits apply, too. As root in a container the
file system of groups is often read-only, and an ordinary user needs a delegated group (`systemd-run
--user --scope -p Delegate=yes`). Without one the supervisor enforces the limits.
"""

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MOST_TASKS = 1 << 14
"""Threads and processes. The supervisor's limit is lower; a fork bomb may outrun it."""
_REMOVE_SECONDS = 2.0


def homes() -> list[Path]:
    """Folders where a group can be made: at most one, of version 1 or 2, as memory is counted."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    writable: list[Path] = []
    for fields in mounts:
        after = fields[fields.index("-") + 1 :]
        for _, controllers, path in own:
            names = controllers.split(",")
            version1 = (
                after[0] == "cgroup" and "memory" in names and "memory" in after[2].split(",")
            )
            version2 = after[0] == "cgroup2" and not controllers
            if not (version1 or version2) or not Path(path).is_relative_to(fields[3]):
                continue
            home = Path(fields[4]) / Path(path).relative_to(fields[3])
            if os.access(home, os.W_OK) and (version1 or _delegated(home)):
                writable.append(home)
    return writable


class Group:
    """One candidate's group, held by descriptors: its paths soon become unreachable.

    Args:
        folders: Where to make it, below `homes()`.
        memory: Bytes that it may use.
    """

    def __init__(self, folders: Iterable[str], memory: int) -> None:
        self._doors: list[int] = []
        self._locks: list[int] = []
        self._events: int | None = None
        for folder in folders:
            with suppress(OSError):
                self._make(Path(folder), memory)

    def admit(self, pid: int) -> None:
        """Moves a process into it, which takes the kernel some 10 ms."""
        for door in self._doors:
            with suppress(ProcessLookupError):  # it has ended already
                os.write(door, str(pid).encode())

    def close(self) -> None:
        """Closes the descriptors."""
        events = [] if self._events is None else [self._events]
        for fd in (*self._doors, *self._locks, *events):
            os.close(fd)
        self._doors, self._locks, self._events = [], [], None

    def ran_out(self) -> bool:
        """Whether the kernel has killed one of its processes for lack of memory."""
        if self._events is None:
            return False
        lines = os.pread(self._events, 4096, 0).decode().splitlines()
        return any(line.split()[0] == "oom_kill" and int(line.split()[1]) > 0 for line in lines)

    def _make(self, folder: Path, memory: int) -> None:
        while True:
            folder.mkdir()
            with suppress(FileNotFoundError):  # swept before it was locked
                self._locks.append(os.open(folder, os.O_RDONLY | os.O_CLOEXEC))
                fcntl.flock(self._locks[-1], fcntl.LOCK_SH)
                folder.stat()
                break
        for name, value in (
            ("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory),
            ("memory.max", memory), ("memory.swap.max", 0), ("pids.max", _MOST_TASKS),
        ):  # fmt: skip
            with suppress(OSError):  # without swap some are not there
                if (folder / name).exists():
                    (folder / name).write_text(str(value))
        for name in ("memory.oom_control", "memory.events"):
            if (folder / name).exists():
                self._events = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
        self._doors.append(os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))


def remove(folders: Iterable[str]) -> None:
    """Removes a group; its processes are dead, or about to be."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    for folder in map(Path, folders):
        while folder.is_dir() and time.monotonic() < deadline:
            try:
                folder.rmdir()
            except OSError:  # not all processes are gone yet
                time.sleep(0.002)


def sweep(prefix: str) -> None:
    """Removes groups of this name below the judge's own whose supervisor is gone."""
    for folder in (each for home in homes() for each in home.glob(f"{prefix}*")):
        with suppress(OSError):  # in use, or another judge is removing it
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(lock)


def _delegated(home: Path) -> bool:
    with suppress(OSError):
        return "memory" in (home / "cgroup.subtree_control").read_text().split()
    return False
