"""The pool of warm candidates: processes that have run nothing yet and wait for a submission."""

import threading
from contextlib import nullcontext, suppress

import torch

from kevin_env.judge.api import DeviceInfo, JudgeError
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.baselines import as_judge_error
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.memory_watch import DeviceMemory, limit_of, nvml_usage
from kevin_env.judge.workers.worker import Worker, asleep


class WarmPool:
    """Forks candidates and keeps some ready. Safe to use from many threads.

    Args:
        device: Where candidates run.
        info: Limits of the device.
        memory: Bytes of host memory that a candidate may use.
        device_memory: Bytes of the GPU that are free before the first candidate; None on a CPU.
        spares: Number of candidates to keep ready.
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
        lease: Lease,
        server: ForkServer | None = None,
    ) -> None:
        self._device = device
        self._info = info
        self._bytes = memory
        self._size = spares
        self._lease = lease
        self._server = self._warmed(server or ForkServer(device.type))
        self._spares: list[Worker] = []
        self._starting = 0
        self._lock = threading.Lock()
        self._closed = False
        self._memory: DeviceMemory | None = None
        if device_memory is not None and (usage := nvml_usage(device)):
            self._memory = DeviceMemory(usage, limit_of(device_memory), lease.wanted)
        with suppress(JudgeError, OSError):
            self._start_spare()
        self._refill_later()

    def take(self) -> Worker:
        """A warm candidate. Call without holding the lease."""
        return self.watched(self.take_trusted())

    def take_trusted(self) -> Worker:
        """As `take`, for trusted code: without a limit of device memory.

        The pool is refilled when a submission ends; starting another process now would disturb.
        """
        return self._take_spare() or self._new_worker()

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
        """Ends every process."""
        self._closed = True
        self.end_spares()
        self._server.close()
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

    def _take_spare(self) -> Worker | None:
        while True:
            with self._lock:
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
            missing = max(0, self._size - len(self._spares) - self._starting)
            missing = 0 if self._closed else missing
            self._starting += missing
        for left in range(missing, 0, -1):
            try:
                threading.Thread(target=self._refill, daemon=True).start()
            except RuntimeError:  # no more threads; the next `take` starts a candidate
                with self._lock:
                    self._starting -= left
                return

    def _refill(self) -> None:
        try:
            with suppress(Exception):  # the next `take` meets the error, where it can be raised
                self._start_spare()
        finally:
            with self._lock:
                self._starting -= 1

    def _start_spare(self) -> None:
        worker = self._new_worker()
        with self._lock:
            kept = not self._closed
            if kept:
                self._spares.append(worker)
        if not kept:
            worker.close()

    def _forked(self, tools: bool = False) -> Worker:
        return Worker(self._alive_server(), str(self._device), self._bytes, tools)

    def _new_worker(self) -> Worker:
        try:
            worker = self._forked()
        except JudgeError:  # the fork server may have been ending
            worker = self._forked()
        try:
            # while a context is created, calls on the GPU take 0.15 ms longer
            on_gpu = self._device.type == "cuda"
            with as_judge_error(), self._lease.shared() if on_gpu else nullcontext():
                worker.prepare(self._info.processors)
        except BaseException:
            worker.close()
            raise
        return worker
