"""What a candidate's processes use of the machine, from /proc. Sizes are in bytes."""

import contextlib
import os
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


def run_time(processes: list[int]) -> int:
    """Nanoseconds for which all their threads have run so far."""
    return sum(ran for ran, _, _ in _scheduled(processes).values())


def scheduled(processes: list[int]) -> Ran:
    """How long all their threads have run, and been ready without a processor."""
    times = _scheduled(processes).values()
    return Ran(sum(ran for ran, _, _ in times) / 1e9, sum(waited for _, waited, _ in times) / 1e9)


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


def arrivals(processes: list[int]) -> dict[str, int]:
    """How often each thread has been scheduled, by its path in /proc."""
    return {thread: count for thread, (_, _, count) in _scheduled(processes).items()}


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


def _scheduled(processes: list[int]) -> dict[str, tuple[int, int, int]]:
    """By thread: nanoseconds run, nanoseconds ready without a processor, and times scheduled."""
    times: dict[str, tuple[int, int, int]] = {}
    for pid in processes:
        with contextlib.suppress(OSError):
            for thread in os.scandir(f"/proc/{pid}/task"):
                with (
                    contextlib.suppress(OSError, ValueError),  # the thread has just ended
                    open(f"{thread.path}/schedstat", "rb", buffering=0) as file,  # noqa: PTH123 (it has to be quick)
                ):
                    ran, waited, count = map(int, file.read(64).split())
                    times[thread.path] = ran, waited, count
    return times


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
