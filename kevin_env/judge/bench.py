"""Everything of a judge that outlives one submission: processes, limits, and cached results."""

import math
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from kevin_env.judge.api import PACES, DeviceInfo, Pace
from kevin_env.judge.candidates import WarmPool
from kevin_env.judge.capacity import COPIES, SUBMISSION, capacity_of, host_memory, machine_of
from kevin_env.judge.device import free_memory, gpus_of_host, identity
from kevin_env.judge.inputs.facts import FactStore, ProblemFacts
from kevin_env.judge.lease import Lease
from kevin_env.judge.precompile import ShapeStore
from kevin_env.judge.timing.calibration import Links
from kevin_env.judge.workers.baselines import Baselines
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem
from kevin_env.profile.ceilings import CeilingStore
from kevin_env.profile.roofline import Rooflines

MEMORY_SHARE = 0.6
"""Share of the host memory that is free when the judge starts, for one candidate."""
LEAST_FREE = 1 / 3
"""Share of the device memory that was free at the start, which a submission leaves to the judge."""
PATIENCE = 10.0
"""Seconds to wait for others to free memory. With five judges on one H200, whose submissions come
and go within two seconds, one of a hundred judged alone found most of the memory taken.
"""
LOOK = 1.0
"""Seconds between two queries of the driver."""


class ProblemCache:
    """What has been found out about problems on one device; each is computed once."""

    def __init__(self, lease: Lease, ceilings: CeilingStore, facts: FactStore) -> None:
        self.facts = facts
        self._largest: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self.shapes = ShapeStore(lease, facts)
        self.rooflines = Rooflines(lease, ceilings)

    def largest(self, problem: Problem, inputs: int, outputs: int) -> tuple[int, int]:
        """Bytes of the largest inputs and outputs of a call so far, with these."""
        before = self._largest[problem.sha256]
        self._largest[problem.sha256] = max(before[0], inputs), max(before[1], outputs)
        return self._largest[problem.sha256]


@dataclass
class ProfilerState:
    """What is known of NVIDIA's tools on one device.

    Attributes:
        refusals: By tool that was tried on a trusted program: why it cannot inspect this device;
            empty if it can.
        missing_metrics: Metrics of Nsight Compute that this device does not have, by the same test.
    """

    refusals: dict[str, str] = field(default_factory=dict[str, str])
    missing_metrics: set[str] = field(default_factory=set[str])


class Bench:
    """The device of a judge with its processes, locks and caches.

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
        device_memory: Bytes of a GPU that were free when the judge had its context; None on a CPU.
        sessions: Held by a submission from when its baselines are prepared until it is timed.
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
        on_gpu = device.type == "cuda"
        planned = max(SUBMISSION / MEMORY_SHARE, host_memory()) if memory is None else memory
        self.memory = int(planned * MEMORY_SHARE)
        self.device_memory = free_memory(device) if on_gpu else None
        judges = gpus_of_host(device) if on_gpu else 1
        self.capacity = capacity_of(machine_of(judges, self.device_memory, memory))
        self.lease = Lease(identity(device))
        ceilings = CeilingStore(device, info, self.lease)
        if on_gpu:
            ceilings.find_all()
        self.problems = ProblemCache(self.lease, ceilings, FactStore(device, info))
        self.profiler = ProfilerState()
        self.sessions = threading.BoundedSemaphore(self.capacity.sessions)
        self.links = Links(device, info.l2)
        self.candidates = WarmPool(
            device, info, self.memory, self.device_memory, self.capacity.spares,
            self.capacity.on_device, self.lease, server,
        )  # fmt: skip
        self.baselines = Baselines(
            self.candidates.take_trusted, self.capacity.baselines, self.lease
        )

    def facts_of(self, problem: Problem) -> ProblemFacts:
        """What is known of a problem. Call without holding the lease."""
        return self.problems.facts.of(problem, self.lease.shared)

    def needed(self, problem: Problem) -> int:
        """Bytes of GPU memory that judging takes at most. Call without holding the lease."""
        if self.device.type == "cpu":
            return 0
        return COPIES * self.problems.shapes.of(problem).largest_call

    def clear(self, needed: float = math.inf) -> None:
        """Ends idle processes on a GPU that has fewer than these bytes free."""
        if self.device.type == "cuda" and free_memory(self.device) < needed:
            self.candidates.end_spares()
            self.baselines.end_free()

    def close(self) -> None:
        """Ends every process."""
        self.candidates.close()
        self.baselines.close()

    def hoards(self, worker: Worker) -> bool:
        """Whether a candidate holds so much device memory that it leaves too little for the judge.

        It stays stopped from here on, so that it frees nothing meanwhile.
        """
        with suppress(CandidateError):
            worker.freeze(True)
        if self.device_memory is None:
            return False
        return self.candidates.held(worker) > LEAST_FREE * self.device_memory

    def wait_for_memory(self, worker: Worker) -> None:
        """Waits a while if others than a candidate and the judge hold most of the device's memory.

        Idle baselines free what they keep. Call without holding the lease.
        """
        if self.device_memory is None:
            return
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            available = free_memory(self.device) + self.candidates.held(worker)
            if available >= LEAST_FREE * self.device_memory:
                return
            self.baselines.rest()
            time.sleep(LOOK)
