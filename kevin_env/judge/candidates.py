"""The pool of warm candidates: processes that have run nothing yet and wait for a submission.

On a GPU they have CUDA contexts, unless the judge is busy: then a submission waits for the device
anyway, and gets its context once it is built. The driver creates and ends one context at a time, so
one for each submission that fails to compile would delay the others.
"""

import threading
import weakref
from contextlib import suppress
from typing import Any

import torch

from kevin_env.judge.api import DeviceInfo, JudgeError, Sandbox
from kevin_env.judge.lease import Lease
from kevin_env.judge.sandbox.attempts import Protection
from kevin_env.judge.workers.baselines import as_judge_error
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.memory_watch import DeviceMemory, limit_of, nvml_usage
from kevin_env.judge.workers.protection import find_held, sandbox_of
from kevin_env.judge.workers.worker import Worker, asleep

CLOSE_SECONDS = 5.0
"""For candidates that are being forked when the pool closes."""


class WarmPool:
    """Forks candidates and keeps some ready. Safe to use from many threads.

    Args:
        device: Where candidates run.
        info: Limits of the device.
        memory: Bytes of host memory that a candidate may use.
        device_memory: Bytes of the GPU that are free before the first candidate; None on a CPU.
        spares: Number of candidates to keep ready.
        busy: While at least this many submissions run, contexts are created only after the build.
        lease: Lease of the device.
        server: A fork server that is already running; the pool takes ownership of it.
    """

    def __init__(
        self,
        device: torch.device,
        info: DeviceInfo,
        memory: int,
        device_memory: int | None,
        spares: int,
        busy: int,
        lease: Lease,
        server: ForkServer | None = None,
    ) -> None:
        self._device = device
        self._info = info
        self._bytes = memory
        self._size = spares
        self._busy = busy
        self._lease = lease
        self._server = self._warmed(server or ForkServer(device.type))
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._forking = 0
        self._forks = threading.Condition()
        self._spares: list[Worker] = []
        self._taken = set[Worker]()
        self._starting = 0
        self._lock = threading.Lock()
        self._closed = False
        self._memory: DeviceMemory | None = None
        if device_memory is not None and (usage := nvml_usage(device)):
            self._memory = DeviceMemory(usage, limit_of(device_memory), lease.wanted)
        self._held: frozenset[Protection] | None = None
        self._trying = threading.Lock()
        threading.Thread(target=self._try_protections, daemon=True).start()
        try:
            with suppress(JudgeError, OSError):
                self._add_spare(self._new_worker())
            self._refill_later()
        except BaseException:  # the judge is being ended
            self.close()
            raise

    def sandbox(self, worker: Worker) -> Sandbox:
        """Which protections hold for a candidate: what it tried itself, and others before it.

        Raises:
            JudgeError: if no candidate started to try them.
        """
        return sandbox_of(worker.held, self._held_by_all())

    def take(self, context: bool = True) -> Worker:
        """A warm candidate, without a context only if `context` is false. Hold no lease."""
        worker = self.watched(self.take_trusted(context))
        with self._lock:
            self._taken.add(worker)
        return worker

    def take_trusted(self, context: bool = True) -> Worker:
        """As `take`, for trusted code: without a limit of device memory.

        The pool is refilled when a submission ends; starting another process now would disturb.
        """
        worker = self._take_spare() or self._new_worker()
        return self._with_context(worker) if context else worker

    def take_for_tools(self) -> Worker:
        """A candidate that has not touched the device, in which NVIDIA's tools start programs."""
        return self.watched(self._forked(tools=True))

    def dismiss(self, worker: Worker) -> None:
        """On a GPU, lets a candidate that is no longer needed end early; `retire` it afterwards."""
        if self._device.type == "cuda":
            worker.dismiss()

    def retire(self, worker: Worker) -> None:
        """Kills a candidate and prepares another. Call without holding the lease.

        On a GPU it is killed at once, which does not disturb other timings. On a CPU it is stopped,
        and killed when nothing is being timed.
        """
        with self._lock:
            self._taken.discard(worker)
        if self._memory is not None:
            self._memory.forget(worker)
        if self._device.type == "cuda":
            worker.close()
        else:
            with asleep(worker), self._lease.shared():
                worker.close()
        self._refill_later()

    def end_spares(self) -> None:
        """Ends the candidates that are kept ready."""
        with self._lock:
            spares, self._spares = self._spares, []
        for worker in spares:
            worker.close()

    def close(self) -> None:
        """Ends every process, also those in use, and starts no more."""
        with self._forks:
            self._closed = True
        with self._lock:  # it may be being replaced
            server = self._server
        server.close()
        with self._forks:
            self._forks.wait_for(lambda: not self._forking, CLOSE_SECONDS)
            workers = list(self._workers)
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.close()
        if self._memory is not None:
            self._memory.close()

    def watched(self, worker: Worker) -> Worker:
        """Limits the device memory of a candidate, and returns it."""
        if self._memory is not None:
            self._memory.watch(worker)
        return worker

    def held(self, worker: Worker) -> int:
        """Bytes of device memory that a candidate holds; 0 where that cannot be measured."""
        return 0 if self._memory is None else self._memory.held(worker)

    def _try_protections(self) -> None:
        with suppress(JudgeError, OSError):  # `sandbox` tries again, where it can be raised
            self._held_by_all()

    def _held_by_all(self) -> frozenset[Protection]:
        with self._trying:
            if self._held is None:
                self._held = find_held(self._forked)
            return self._held

    def _take_spare(self) -> Worker | None:
        while True:
            with self._lock:
                self._spares.sort(key=lambda each: each.has_context)
                worker = self._spares.pop() if self._spares else None
            if worker is None or worker.waiting:
                return worker
            worker.close()  # killed from outside, such as by the kernel when memory is short

    def _alive_server(self) -> ForkServer:
        with self._lock:
            if not self._server.alive and not self._closed:
                self._server.close()
                self._server = self._warmed(ForkServer(self._device.type))
            return self._server

    def _warmed(self, server: ForkServer) -> ForkServer:
        if self._info.capability:
            server.warm(self._info.capability)
        return server

    def _refill_later(self) -> None:
        """Starts all missing spares at once: the driver needs less time than for one by one."""
        with self._lock:
            if self._closed:
                return
            missing = max(0, self._size - len(self._spares) - self._starting)
            bare = [each for each in self._spares if not each.has_context and not self._is_busy()]
            self._spares = [each for each in self._spares if each not in bare]
            due: list[Worker | None] = [*bare, *[None] * missing]
            self._starting += len(due)
        while due:
            try:
                threading.Thread(target=self._refill, args=(due[-1],), daemon=True).start()
            except RuntimeError:  # no more threads; the next `take` starts a candidate
                with self._lock:
                    self._starting -= len(due)
                    self._spares += filter(None, due)
                return
            due.pop()

    def _is_busy(self) -> bool:
        return len(self._taken) >= self._busy

    def _refill(self, bare: Worker | None) -> None:
        try:
            with suppress(Exception):  # the next `take` meets the error, where it can be raised
                self._add_spare(bare or self._new_worker())
        finally:
            with self._lock:
                self._starting -= 1

    def _add_spare(self, worker: Worker) -> None:
        if not self._is_busy():
            self._with_context(worker)
        with self._lock:
            kept = not self._closed
            if kept:
                self._spares.append(worker)
        if not kept:
            worker.close()

    def _forked(self, memory: int | None = None, **more: Any) -> Worker:
        """A candidate that `close` ends, too. Arguments as of `Worker`."""
        device, memory = str(self._device), memory or self._bytes
        worker: Worker | None = None
        with self._forks:
            if self._closed:
                raise JudgeError("the judge is closed")
            self._forking += 1
        try:
            for left in (1, 0):
                try:
                    worker = Worker(self._alive_server(), device, memory, **more)
                    break
                except JudgeError:  # the fork server may have been ending, or did not answer
                    if not left:
                        raise
            assert worker is not None
            return worker
        finally:
            with self._forks:
                self._forking -= 1
                self._workers |= {worker} if worker else set()
                self._forks.notify_all()

    def _new_worker(self) -> Worker:
        worker = self._forked()
        try:
            with as_judge_error():
                worker.prepare(self._info.processors)
        except BaseException:
            worker.close()
            raise
        return worker

    def _with_context(self, worker: Worker) -> Worker:
        """A candidate that has run nothing, with its context."""
        if not worker.has_context:
            try:
                # while a context is created, calls on the GPU take 0.15 ms longer
                with as_judge_error(), self._lease.shared():
                    worker.create_context()
            except BaseException:
                worker.close()
                raise
        return worker
