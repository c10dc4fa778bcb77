"""How much of a machine a judge uses: submissions at once, contexts, warm processes."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
CONTEXT = 3 * GIB // 4
"""Device memory of a process with a CUDA context and nothing else: 720 MB on an H200."""
SUBMISSION = 2 * GIB
"""Host memory of one submission: its candidate, and a compiler that reads torch's headers."""
HOST_SHARE = 0.5
"""Share of the free host memory for submissions; the rest is for inputs and other processes."""
CORE_SHARE = {"cpu": 0.5, "cuda": 0.75}
"""Share of the cores for submissions, by device; the rest is for timed processes and the judge."""
MOST = 24
WARM_SHARE, MOST_WARM = 2, 8
"""Concurrent submissions per warm candidate, and the most warm candidates."""
READY = 4
"""Most submissions that wait for a GPU with a context. The driver makes about ten a second.
"""
READY_SHARE = 0.1
"""Share of a GPU's memory for their contexts."""
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Machine:
    """What one judge may use. Bytes; `device_memory` excludes its own context, None on a CPU."""

    cores: int
    memory: int
    device_memory: int | None = None


@dataclass(frozen=True)
class Capacity:
    """How a judge uses its machine.

    Attributes:
        slots: Concurrent submissions, including those that compile.
        spares: Candidates that are kept warm.
        ready: Submissions that wait for the device with a context.
    """

    slots: int
    spares: int
    ready: int


def capacity_of(machine: Machine) -> Capacity:
    """What cores, host memory and device memory permit, each by its share; at least one of each."""
    device = "cpu" if machine.device_memory is None else "cuda"
    slots = min(
        MOST, int(machine.cores * CORE_SHARE[device]), int(machine.memory * HOST_SHARE / SUBMISSION)
    )
    slots = max(1, slots)
    if machine.device_memory is None:
        return Capacity(slots, spares=1, ready=slots)
    contexts = int(machine.device_memory * READY_SHARE / CONTEXT)
    spares = max(1, min(MOST_WARM, slots // WARM_SHARE))
    return Capacity(slots, spares, max(1, min(READY, contexts)))


def machine_of(judges: int, device_memory: int | None, memory: int | None = None) -> Machine:
    """This machine, or one of `judges` equal parts of its host, with the memory of one GPU.

    Args:
        judges: Judges that share the host.
        device_memory: As in `Machine`.
        memory: Bytes of host memory for all judges; by default what is free.
    """
    memory = host_memory() if memory is None else memory
    return Machine(max(1, cores() // judges), memory // judges, device_memory)


def cores(group: Path = _CGROUP) -> int:
    """Cores that this process may use, by its affinity and its container's quota."""
    allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no group, or `max`
        quota, period = (group / "cpu.max").read_text().split()
        return min(allowed, max(1, int(quota) // int(period)))
    return allowed


def host_memory(group: Path = _CGROUP) -> int:
    """Bytes that can still be allocated, by the kernel and by this container's limit."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(
        (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")), 8 * GIB
    )
    with suppress(OSError, ValueError):
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        kept = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = sum(int(kept.get(name, 0)) for name in ("inactive_file", "active_file"))
        return min(free, max(0, limit - used + cached))
    return free
