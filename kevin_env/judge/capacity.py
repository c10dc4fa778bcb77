"""How much of a machine a judge takes: submissions under way at once, on the device at once,
candidates kept warm.
"""

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
CONTEXT = 3 * GIB // 4
"""Device memory of one process that has a CUDA context and nothing else: 720 MB on an H200."""
PARTNERS, MOST_PARTNERS = 3, 8
"""How many partners a judge keeps (`kevin_env.judge.workers.baselines`), and on a GPU with room for many
contexts.
"""
ROOMY = 40
"""Contexts from which on a GPU has room for many: then one submission's partners are made ready
while another's are timed.
"""
DEVICE_SHARE = 0.4
"""Of a GPU's memory for contexts; the rest is for problems."""
SUBMISSION = 2 * GIB
"""Host memory of one submission: its candidate, and a compiler that reads torch's headers."""
HOST_SHARE = 0.5
"""Of the host memory that is free for submissions; the rest is for inputs, and for who else works
there.
"""
CORE_SHARE = {"cpu": 0.5, "cuda": 0.75}
"""Of the cores for submissions, by device; the rest is for who is timed and for the judge."""
MOST = 24
PLACES = 8
"""Submissions that are on a GPU at once, at most. Each place has an equal share of its memory."""
COPIES = 8
"""Device memory that judging takes, as a multiple of a call's inputs and outputs: inputs in private
and in shared memory, outputs of both sides, both in float64, calls that wait for their comparison.
"""
WARM_SHARE, MOST_WARM = 2, 8
"""One warm candidate for so many submissions at once, and the most."""
WARM_CONTEXTS = 3
"""And one for so many contexts that a GPU has room for."""
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Machine:
    """What one judge may use. Bytes; `device_memory` is what it has besides its own context, None
    on a CPU.
    """

    cores: int
    memory: int
    device_memory: int | None = None


@dataclass(frozen=True)
class Capacity:
    """What a judge does with it.

    Attributes:
        slots: Submissions under way at once, compilers included.
        on_device: Places on the device. A large problem takes several.
        spares: Candidates that are kept warm for the next submissions.
        contests: Submissions that are timed or about to be, each with its partners.
        partners: Processes of partners that are kept.
    """

    slots: int
    on_device: int
    spares: int
    contests: int = 1
    partners: int = PARTNERS
    place: float = math.inf
    """Bytes of device memory of one place."""

    def places(self, call: int) -> int:
        """How many places a submission takes whose calls have so many bytes of inputs and outputs."""
        return max(1, min(self.on_device, math.ceil(COPIES * call / self.place)))


def capacity_of(machine: Machine) -> Capacity:
    """As many as cores, host memory and device memory admit, each by its share; never none."""
    device = "cpu" if machine.device_memory is None else "cuda"
    slots = min(
        MOST, int(machine.cores * CORE_SHARE[device]), int(machine.memory * HOST_SHARE / SUBMISSION)
    )
    if machine.device_memory is None:
        return Capacity(max(slots, 1), max(slots, 1), 1)
    contexts = int(machine.device_memory * DEVICE_SHARE / CONTEXT)
    contests, partners = (3, MOST_PARTNERS) if contexts >= ROOMY else (1, PARTNERS)
    contexts -= partners
    spares = max(1, min(MOST_WARM, slots // WARM_SHARE, contexts // WARM_CONTEXTS))
    slots = max(1, min(slots, contexts - spares))
    on_device = min(slots, PLACES)
    place = (1 - DEVICE_SHARE) * machine.device_memory / on_device
    return Capacity(slots, on_device, spares, contests, partners, place)


def machine_of(judges: int, device_memory: int | None) -> Machine:
    """This machine, or one of so many equal parts of its host, with the memory of one GPU."""
    return Machine(max(1, cores() // judges), host_memory() // judges, device_memory)


def cores(group: Path = _CGROUP) -> int:
    """Cores that this process may use, by its affinity and by what its container is given."""
    allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no group, or `max`
        quota, period = (group / "cpu.max").read_text().split()
        return min(allowed, max(1, int(quota) // int(period)))
    return allowed


def host_memory(group: Path = _CGROUP) -> int:
    """Bytes that can still be taken: what the kernel calls available, and no more than this
    container has left.
    """
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
