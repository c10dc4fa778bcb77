"""What a judge keeps ready on its device: warm candidates, partners, and what it knows of problems
and device.
"""

import math
import threading
from contextlib import suppress
from functools import cached_property

import torch

from kevin_env.judge.api import PACES, DeviceInfo, JudgeError, Pace
from kevin_env.judge.capacity import SUBMISSION, capacity_of, host_memory, machine_of
from kevin_env.judge.device import free_memory, gpus_of_host, identity
from kevin_env.judge.inputs.cases import Nature, Sketches, largest_call
from kevin_env.judge.lease import Lease
from kevin_env.judge.roofline.ceilings import CeilingStore
from kevin_env.judge.roofline.roofline import Rooflines
from kevin_env.judge.timing.calibration import stream_seconds
from kevin_env.judge.workers.baselines import Partners, ours
from kevin_env.judge.workers.errors import Trouble
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.memory_watch import DeviceMemory, limit_of, nvml_usage
from kevin_env.judge.workers.pauses import asleep
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem

MEMORY_SHARE = 0.6
"""Of what is free when the judge starts."""
ROOM = 3e-6
"""Seconds by which the constant of a link varies from one contest to the next."""
LEAST_FREE = 1 / 3
"""Share of what was free on a GPU that is left beside a submission which is alone: the judge's own
processes need less than the rest.
"""


class Bench:
    """Everything of a judge that outlives one submission.

    Args:
        device: Where candidates run.
        info: Its limits.
        server: Where candidates are forked from, when it has been started already; it is this one's
            from now on.
        pace: How many calls a verdict takes; by default what `PACES` has for the kind of device.
    """

    def __init__(
        self,
        device: torch.device,
        info: DeviceInfo,
        server: ForkServer | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.device = device
        self.info = info
        self.pace = pace or PACES[device.type]
        on_gpu = device.type == "cuda"
        self.memory = max(SUBMISSION, int(host_memory() * MEMORY_SHARE))
        """Bytes that a candidate may use, the same for all: a verdict does not depend on who else
        works here.
        """
        self.room = free_memory(device) if on_gpu else None
        """Bytes of a GPU that were free when the judge had its context."""
        judges = gpus_of_host(device) if on_gpu else 1
        self.capacity = capacity_of(machine_of(judges, self.room))
        self.lease = Lease(identity(device))
        self.ceilings = CeilingStore(device, info, self.lease)
        if on_gpu:
            self.ceilings.find_all()
        self.rooflines = Rooflines(self.lease, self.ceilings)
        self.natures: dict[tuple[str, str, str], Nature] = {}
        """By `nature_key`."""
        self.sketches = Sketches(self.lease)
        self.refusals: dict[str, str] = {}
        """By tool that was tried on a program of ours: why it cannot look into this device; empty
        if it can.
        """
        self.missing_metrics: set[str] = set()
        """Of Nsight Compute's, those that this device does not have, likewise."""
        self.timing = threading.Lock()
        """Held while a submission is timed."""
        self.contests = threading.BoundedSemaphore(self.capacity.contests)
        """Held by a submission from when its partners are made ready until it is timed."""
        self.partners = Partners(self._warm_worker, self.capacity.partners, self.lease)
        self.beginning = threading.Lock()
        """Held while Nsight Compute is begun for `keep_begun`."""
        self._least_constant = math.inf
        self._begun: list[tuple[Worker, frozenset[str]]] = []
        self._server = self._warmed(server or ForkServer(device.type))
        self._spares: list[Worker] = []
        self._coming = 0
        """Spares that are being started."""
        self._lock = threading.Lock()
        self._closed = False
        usage = nvml_usage(device) if on_gpu else None
        self._memory = DeviceMemory(usage, self.timing) if usage else None
        with suppress(JudgeError, OSError):
            self._start_spare()
        self._refill_later()

    @cached_property
    def known_seconds(self) -> float:
        """How long the null model's kernel takes on a GPU. Hold the device alone when it is first
        asked for.
        """
        return stream_seconds(self.device, self.info.l2)

    def least_constant(self, seen: float) -> float:
        """The least constant of a link that was seen on this device, `seen` among them, with a
        little room above.
        """
        self._least_constant = min(self._least_constant, seen)
        return self._least_constant + ROOM

    def places(self, problem: Problem) -> int:
        """How many of the device's places a submission to a problem takes. Hold no lease."""
        if self.device.type == "cpu":
            return 1
        return self.capacity.places(largest_call(self.sketches.of(problem)))

    def take(self) -> Worker:
        """A warm candidate that has run nothing. Hold no lease: a context takes a while."""
        return self.watched(self._take_spare() or self._new_worker())

    def take_for_tools(self) -> Worker:
        """A candidate that has run nothing and touched no device, for programs that NVIDIA's tools
        start in it.
        """
        return self.watched(self._forked(tools=True))

    def keep_begun(self, worker: Worker, missing: frozenset[str]) -> None:
        """Keeps a candidate in which Nsight Compute has begun for the next, one at most; any other
        is ended.

        Args:
            worker: The candidate; it stands still.
            missing: The metrics that were not asked for.
        """
        with self._lock:
            kept = not self._closed and not self._begun
            if kept:
                self._begun.append((worker, missing))
        if not kept:
            self.retire(worker)

    def take_begun(self) -> tuple[Worker, frozenset[str]] | None:
        """What was kept; None when nothing is."""
        with self._lock:
            return self._begun.pop() if self._begun else None

    @property
    def has_begun(self) -> bool:
        """Whether one is kept."""
        return bool(self._begun)

    def dismiss(self, worker: Worker) -> None:
        """Lets a candidate end that is not needed any more and still to be retired: on a GPU, as
        there.
        """
        if self.device.type == "cuda":
            worker.dismiss()

    def retire(self, worker: Worker) -> None:
        """Kills a candidate and prepares another. Hold no lease.

        On a GPU at once, since it does not show in others' times; on a CPU it stands still until
        nobody is timed.
        """
        if self._memory is not None:
            self._memory.forget(worker)
        if self.device.type == "cuda":
            worker.close()
        else:
            with asleep(worker), self.lease.shared():
                worker.close()
        self._refill_later()

    def clear(self) -> None:
        """Ends the processes that are kept ready on a GPU, for a submission that takes most of its
        memory.
        """
        if self.device.type == "cuda":
            with self._lock:
                spares, self._spares = self._spares, []
            for worker in spares:
                worker.close()
            self.partners.end_free()

    def close(self) -> None:
        """Ends every process."""
        self._closed = True
        with self._lock:
            spares, self._spares = self._spares, []
            begun, self._begun = self._begun, []
        for worker in (*spares, *(worker for worker, _ in begun)):
            worker.close()
        self.partners.close()
        self._server.close()
        if self._memory is not None:
            self._memory.close()

    def watched(self, worker: Worker, held: int = 0) -> Worker:
        """The same, ended when it uses more of the device's memory than a submission may that has
        `held` of it now.
        """
        if self._memory is not None:
            self._memory.watch(worker, limit_of(torch.cuda.mem_get_info(self.device)[0] + held))
        return worker

    def overdrew(self, worker: Worker) -> bool:
        """Whether a candidate was ended for the device's memory that it held."""
        return self._memory is not None and self._memory.ended(worker)

    def held(self, worker: Worker) -> int:
        """Bytes of the device that a candidate holds, as far as that can be told."""
        return 0 if self._memory is None else self._memory.held(worker)

    def hoards(self, worker: Worker) -> bool:
        """Whether a candidate holds what the judge was to have: if the judge lacks memory now, it
        is its doing.

        It stands still from here on, so that it gives nothing back meanwhile.
        """
        with suppress(Trouble):
            worker.freeze(True)
        return self.room is not None and self.held(worker) > LEAST_FREE * self.room

    def crowded(self, worker: Worker) -> bool:
        """Whether most of the device's memory that was free is held neither by a candidate nor by
        the judge.

        Of a CPU it is not asked.
        """
        return (
            self.room is not None
            and free_memory(self.device) + self.held(worker) < LEAST_FREE * self.room
        )

    def _take_spare(self) -> Worker | None:
        while True:
            with self._lock:
                worker = self._spares.pop() if self._spares else None
            if worker is None or worker.waiting:
                return worker
            worker.close()  # ended meanwhile by something outside, such as the kernel short of memory

    def _alive_server(self) -> ForkServer:
        with self._lock:
            if not self._server.alive and not self._closed:
                self._server.close()
                self._server = self._warmed(ForkServer(self.device.type))
            return self._server

    def _warmed(self, server: ForkServer) -> ForkServer:
        if self.info.capability:
            server.warm(self.info.capability)
        return server

    def _refill_later(self) -> None:
        """Starts all missing spares at once, which takes the driver less time than one after the
        other.
        """
        with self._lock:
            missing = (
                0
                if self._closed
                else max(0, self.capacity.spares - len(self._spares) - self._coming)
            )
            self._coming += missing
        for left in range(missing, 0, -1):
            try:
                threading.Thread(target=self._refill, daemon=True).start()
            except (
                RuntimeError
            ):  # this machine gives no more threads; whoever needs one next starts it
                with self._lock:
                    self._coming -= left
                return

    def _refill(self) -> None:
        try:
            with suppress(
                Exception
            ):  # whoever needs one next meets the error where it can be raised
                self._start_spare()
        finally:
            with self._lock:
                self._coming -= 1

    def _start_spare(self) -> None:
        worker = self._new_worker()
        with self._lock:
            kept = not self._closed
            if kept:
                self._spares.append(worker)
        if not kept:
            worker.close()

    def _warm_worker(self) -> Worker:
        """A warm candidate for a partner. It is replaced when a submission has ended: now that
        would be in the way.
        """
        return self._take_spare() or self._new_worker()

    def _forked(self, tools: bool = False) -> Worker:
        return Worker(self._alive_server(), str(self.device), self.memory, tools)

    def _new_worker(self) -> Worker:
        """A candidate that was not there yet."""
        try:
            worker = self._forked()
        except JudgeError:  # the fork server may have been ending
            worker = self._forked()
        try:
            with ours():
                worker.prepare(self.info.processors)
        except BaseException:
            worker.close()
            raise
        return worker
