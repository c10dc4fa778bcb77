"""Everything of a judge that outlives one submission: the lane, processes and cached results."""

import math
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from kevin_env.judge.api import PACES, DeviceInfo, Pace
from kevin_env.judge.candidates import WarmPool
from kevin_env.judge.capacity import SUBMISSION, capacity_of, host_memory, machine_of
from kevin_env.judge.device import free_memory, gpu_of, gpus_of_host, identity, unused_memory
from kevin_env.judge.inputs.facts import FactStore, ProblemFacts
from kevin_env.judge.lane import Lane, Line
from kevin_env.judge.precompile import Shapes, find_shapes, properties_of
from kevin_env.judge.ready import Ready
from kevin_env.judge.replayer import Replayer
from kevin_env.judge.timing.calibration import Links
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.memory_watch import DeviceMemory, nvml_usage
from kevin_env.judge.workers.worker import Worker
from kevin_env.languages import LANGUAGES, obstacle, preloaded_for
from kevin_env.parsing import imports, parsed
from kevin_env.problem import Problem
from kevin_env.profile.ceilings import CeilingStore
from kevin_env.profile.roofline import Rooflines
from kevin_env.profile.tools import ProfilerState

MEMORY_SHARE = 0.6
"""Share of the host memory that is free when the judge starts, for one candidate."""
LEAST_FREE = 1 / 3
"""Share of the device memory that others leave, which a submission leaves to the judge."""
READY_SHARE = 1 / 4
"""Share of the device memory for what submissions that are ready share with the judge or cache."""


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
        device_memory: Bytes of a GPU that were free when the judge had its context; None on a CPU.
        slots: For submissions that are judged at once, compilers included.
        ready: Places for those that wait for the lane with a context.
        links: What is known of a GPU's links.
        properties: Of a GPU, for candidates that do not use it.
        facts, rooflines: What has been found out about problems; each is found once, in the lane.
        replayer: Plays recorded submissions; None on a CPU.
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
        on_gpu = device.type == "cuda"
        self.device_memory = free_memory(device) if on_gpu else None
        judges = gpus_of_host(device) if on_gpu else 1
        self.capacity = capacity_of(machine_of(judges, self.device_memory, memory))
        self.slots = Line(self.capacity.slots)
        shared = READY_SHARE * (self.device_memory or math.inf)
        self.ready = Ready(self.capacity.ready, shared)
        self.lane = Lane(identity(device))
        self.links = Links(device, info.l2)
        self.properties = properties_of(device) if on_gpu else {}
        ceilings = CeilingStore(device, info)
        if on_gpu:
            with self.lane.entered():
                ceilings.find_all()
        self.facts, self.rooflines = FactStore(device, info), Rooflines(ceilings)
        self.profiler = ProfilerState()
        self._limit = None
        if self.device_memory is not None and (usage := nvml_usage(device)):
            free = partial(unused_memory, device)
            self._limit = DeviceMemory(usage, free, self.device_memory)
        self._gpu = gpu_of(device) if on_gpu else None
        self.candidates = self._new_candidates(self.capacity.spares, server=server)
        self._with_language = dict[str, WarmPool]()
        self._starting = threading.Lock()
        self.replayer = Replayer(self._start_replayer, device, info.l2) if on_gpu else None

    def candidates_for(self, code: str) -> WarmPool:
        """Those that have imported the language of the code, if that takes seconds."""
        tree = parsed(code)
        module = preloaded_for(imports(tree)) if tree is not None else ""
        return self._candidates_with(module) if module else self.candidates

    def prepare(self, language: str) -> None:
        """Starts those of a language that is asked for, so that its import delays no submission."""
        known = LANGUAGES.get(language)
        on_gpu, versions = self.info.device.startswith("cuda"), self.info.versions
        if known and known.preloaded and not obstacle(language, on_gpu, versions):
            self._candidates_with(known.module)

    def _candidates_with(self, module: str) -> WarmPool:
        with self._starting:
            if module not in self._with_language:
                self._with_language[module] = self._new_candidates(1, module=module)
            return self._with_language[module]

    def _new_candidates(self, spares: int, **more: Any) -> WarmPool:
        return WarmPool(self.info, self.memory, spares, self._limit, gpu=self._gpu, **more)

    def facts_of(self, problem: Problem) -> ProblemFacts:
        """What is known of a problem. Call without holding the lane."""
        return self.facts.of(problem, self.lane.entered)

    def shapes_of(self, problem: Problem) -> Shapes:
        """The shapes of a problem's cases, found once. Call without holding the lane.

        Finding them takes the lane, since it runs in the interpreter that times others.
        """
        find = partial(find_shapes, problem, self.device)
        return self.facts.kept("cases", problem, Shapes, find, self.lane.entered)

    def hoards(self, worker: Worker) -> bool:
        """Whether a candidate holds so much device memory that it leaves too little for the judge.

        It stays stopped from here on, so that it frees nothing meanwhile.
        """
        with suppress(CandidateError):
            worker.freeze(True)
        limit = self._limit
        return limit is not None and limit.held(worker) > LEAST_FREE * limit.available()

    def lacks_memory(self) -> bool:
        """Whether other programs hold most of a GPU's memory. No candidate holds any."""
        if self.device_memory is None:
            return False
        return free_memory(self.device) < LEAST_FREE * self.device_memory

    def _start_replayer(self) -> Worker:
        return self.candidates.with_context(self.candidates.take(), queues=1)

    def close(self) -> None:
        """Ends every process."""
        if self.replayer is not None:
            self.replayer.end()
        for each in (*self._with_language.values(), self.candidates):
            each.close()
