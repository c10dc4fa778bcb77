"""What a candidate's processes use of the machine, from /proc. Sizes are in bytes."""

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_MEASURED = 64
"""With more processes, no exact share of memory is computed: it takes milliseconds each."""
MEASURED = 16 << 30
"""Nor with more resident bytes: their pages are read one by one, 0.1 s per GiB.

A process that maps the same pages repeatedly can have any number of them.
"""
MAX_FILES = 100_000
BUSY = 0.01
"""A submission on a CPU that runs for a smaller share of the time than this is only waiting."""
SLEEPING = 10
"""A submission on a CPU that sleeps has this many times as long as one that computes."""


@dataclass(frozen=True)
class Ran:
    """What processes have done so far, summed over threads.

    Attributes:
        ran: Seconds on a processor.
        waited: Seconds ready to run without one.
    """

    ran: float
    waited: float


def starved(elapsed: float, before: Ran, after: Ran) -> float:
    """For how much of `elapsed` processes were ready, but none of them had a processor.

    Others of them may have run meanwhile, and threads that wait for each other are no evidence of
    other load. So it is at most the elapsed time less all that they ran.
    """
    return max(0.0, min(after.waited - before.waited, elapsed - (after.ran - before.ran), elapsed))


def children() -> dict[int, list[int]]:
    """The children of every process."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                below.setdefault(_parent(entry.name), []).append(int(entry.name))
    return below


def descendants(of: int) -> Iterator[int]:
    """Every process below one."""
    below = children()
    todo = [of]
    while todo:
        pids = below.get(todo.pop(), [])
        yield from pids
        todo += pids


def listed_below(of: int) -> list[int]:
    """As `descendants`, by the kernel's lists; it may lack some while others of them end.

    It costs little, while `descendants` reads about every process of the machine.
    """
    if not _has_lists():
        return list(descendants(of))
    found, todo = list[int](), [of]
    while todo:
        with contextlib.suppress(OSError):
            for thread in os.scandir(f"/proc/{todo.pop()}/task"):
                with contextlib.suppress(OSError):  # the thread has just ended
                    below = Path(thread.path, "children").read_bytes().split()
                    found += map(int, below)
                    todo += map(int, below)
    return found


@functools.cache
def _has_lists() -> bool:
    """Whether the kernel lists children (CONFIG_PROC_CHILDREN)."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def ancestors(pid: int) -> Iterator[int]:
    """Every process above one, the nearest first."""
    with contextlib.suppress(OSError, ValueError):
        while pid > 1:
            pid = _parent(pid)
            yield pid


def more_memory_than(allowed: int, processes: list[int]) -> bool:
    """Whether processes together hold more.

    Shared memory counts once where that is cheap to compute.
    """
    resident = sum(map(_resident, processes))
    if resident <= allowed:
        return False
    many = len(processes) > MAX_MEASURED or resident > MEASURED
    return many or sum(map(_proportional, processes)) > allowed


def threads(processes: list[int]) -> int:
    """How many threads processes have together."""
    total = 0
    for pid in processes:
        with contextlib.suppress(OSError, ValueError):
            total += int(_after_name(pid)[17])
    return total


def run_time(processes: list[int]) -> float:
    """Seconds for which all their threads that are alive have run so far."""
    return scheduled(processes).ran


def scheduled(processes: list[int]) -> Ran:
    """How long all their threads have run, and been ready without a processor."""
    times = list(_scheduled(processes))
    return Ran(sum(ran for ran, _ in times) / 1e9, sum(waited for _, waited in times) / 1e9)


def processor_time(of: int) -> float:
    """Seconds for which all below a process have run so far, in steps of some 10 ms.

    Those that have ended count, except where their parent ignores their end. The process itself is
    left out: a supervisor watches a submission that does nothing.
    """
    ticks = 0
    for pid, used in ((of, slice(13, 15)), *((each, slice(11, 15)) for each in listed_below(of))):
        with contextlib.suppress(OSError, ValueError):
            ticks += sum(map(int, _after_name(pid)[used]))  # their own, and of ended children
    return ticks / os.sysconf("SC_CLK_TCK")


def charged(elapsed: float, ran: float) -> float:
    """How much of a limit processes on a CPU have used up in `elapsed` seconds.

    They are charged for the time that they ran, so that a limit does not depend on what else runs
    on the machine. Several at a time cost no more than one. One that sleeps is charged for a tenth
    of the time.

    Args:
        elapsed: Seconds that have passed.
        ran: Seconds of processor time that they used meanwhile.
    """
    return max(min(ran, elapsed), elapsed / SLEEPING)


def faults(processes: list[int]) -> tuple[int, int]:
    """The number of processes and of their page faults.

    A process that waits for a kernel has no new ones.
    """
    total = 0
    for pid in processes:
        with contextlib.suppress(OSError, ValueError):
            fields = _after_name(pid)
            total += int(fields[7]) + int(fields[9])
    return len(processes), total


class CpuUse:
    """What a submission on a CPU has used of a limit, from one look to the next.

    Args:
        pid: Its supervisor.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ran: float | None = None

    def since(self, elapsed: float) -> tuple[float, float | None]:
        """Of the seconds since the last look, those that count, and those that it only waited.

        The latter are None if it did anything. Before the first look nothing is known, and a
        submission is taken to have slept.
        """
        before, self._ran = self._ran, processor_time(self._pid)
        if before is None:
            return charged(elapsed, 0.0), None
        ran = self._ran - before
        return charged(elapsed, ran), elapsed if ran < BUSY * elapsed else None


class GpuUse:
    """As `CpuUse`, of a submission on a GPU."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before: Ran | None = None
        self._faults = 0, 0

    def since(self, elapsed: float) -> tuple[float, float | None]:
        """As `CpuUse.since`. Time without a processor does not count.

        It may spin while it waits for a kernel; a process that compiles has page faults.
        """
        processes = listed_below(self._pid)
        now, faulted = scheduled(processes), faults(processes)
        if self._before is not None:
            elapsed -= starved(elapsed, self._before, now)
        waiting, self._before, self._faults = faulted == self._faults, now, faulted
        return elapsed, elapsed if waiting else None


def stored(place: Path, in_memory: bool) -> int:
    """Bytes in a file system in memory, or on disk in a folder."""
    if in_memory:
        with contextlib.suppress(OSError):
            stat = os.statvfs(place)
            return (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        return 0
    total = 0
    for count, (folder, _, files) in enumerate(os.walk(place)):
        if count + len(files) > MAX_FILES:
            return 1 << 62
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
    return total


def _scheduled(processes: list[int]) -> Iterator[tuple[int, int]]:
    """For each thread: nanoseconds run, and nanoseconds ready without a processor."""
    for pid in processes:
        with contextlib.suppress(OSError):
            for thread in os.scandir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, ValueError):  # the thread has just ended
                    ran, waited, _ = Path(f"{thread.path}/schedstat").read_bytes().split()
                    yield int(ran), int(waited)


def _parent(pid: int | str) -> int:
    return int(_after_name(pid)[1])


def _after_name(pid: int | str) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; the name before it may hold any bytes."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def _resident(pid: int) -> int:
    """Resident bytes that are in no file on disk. Pages shared after a fork count twice."""
    with contextlib.suppress(OSError, ValueError):
        return sum(_sizes(pid, "status", b"RssAnon:", b"RssShmem:"))
    return 0


def _proportional(pid: int) -> int:
    """As `_resident`, each page divided by the number of processes that share it."""
    with contextlib.suppress(OSError, ValueError):
        if sizes := _sizes(pid, "smaps_rollup", b"Pss_Anon:", b"Pss_Shmem:"):
            return sum(sizes)
    return _resident(pid)


def _sizes(pid: int, file: str, *names: bytes) -> list[int]:
    """The sizes under these names. A process's chosen name can hold all but a newline."""
    lines = Path(f"/proc/{pid}/{file}").read_bytes().split(b"\n")
    return [int(line.split()[1]) << 10 for line in lines if line.startswith(names)]
