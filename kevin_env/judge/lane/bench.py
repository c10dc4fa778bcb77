"""Everything of a judge that outlives one submission: the lane, processes and cached results."""

import torch

from kevin_env.judge.api import PACES, DeviceInfo, Pace
from kevin_env.judge.bench import ProfilerState
from kevin_env.judge.capacity import SUBMISSION, capacity_of, host_memory, machine_of
from kevin_env.judge.device import identity
from kevin_env.judge.inputs.facts import FactStore
from kevin_env.judge.lane.baselines import Baselines
from kevin_env.judge.lane.lane import Lane, Line
from kevin_env.judge.lane.warm import WarmPool
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.profile.ceilings import CeilingStore
from kevin_env.profile.roofline import Rooflines

MEMORY_SHARE = 0.6
"""Share of the host memory that is free when the judge starts, for one candidate."""
KEPT_BASELINES = 3
"""Processes of references, with that of the null model."""


class Problems:
    """What has been found out about problems on one device; each is found once, in the lane."""

    def __init__(self, lane: Lane, ceilings: CeilingStore, facts: FactStore) -> None:
        self.facts = facts
        self.rooflines = Rooflines(lane, ceilings)


class Bench:
    """The device of a judge with its lane, processes and caches.

    Args:
        device: Where candidates run.
        info: Limits of the device.
        server: A fork server that is already running; the bench takes ownership of it.
        pace: How many calls a verdict takes; by default the entry of `PACES` for the device.
        memory: Bytes of host memory to plan with; by default what is free, and at least enough for
            one submission.

    Attributes:
        memory: Bytes of host memory that a candidate may use. It is the same for all, so that a
            verdict does not depend on what else runs on the machine.
        slots: For submissions that are judged at once, compilers included.
    """

    def __init__(
        self,
        device: torch.device,
        info: DeviceInfo,
        server: ForkServer | None = None,
        pace: Pace | None = None,
        memory: int | None = None,
    ) -> None:
        self.device = device
        self.info = info
        self.pace = pace or PACES[device.type]
        planned = max(SUBMISSION / MEMORY_SHARE, host_memory()) if memory is None else memory
        self.memory = int(planned * MEMORY_SHARE)
        self.capacity = capacity_of(machine_of(1, None, memory))
        self.slots = Line(self.capacity.slots)
        self.lane = self.lease = Lane(identity(device))
        ceilings = CeilingStore(device, info, self.lane)
        self.problems = Problems(self.lane, ceilings, FactStore(device, info))
        self.profiler = ProfilerState()
        self.candidates = WarmPool(info, self.memory, self.capacity.spares, server=server)
        self.baselines = Baselines(self.candidates.take_trusted, KEPT_BASELINES)

    def close(self) -> None:
        """Ends every process."""
        self.candidates.close()
