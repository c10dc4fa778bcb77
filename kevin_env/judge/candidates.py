"""Warm candidates: processes that have run nothing yet and wait for a submission."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kevin_env.judge.api import DeviceInfo, JudgeError, Sandbox
from kevin_env.judge.device import Gpu
from kevin_env.judge.sandbox.attempts import Protection
from kevin_env.judge.workers.errors import as_judge_error
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.memory_watch import DeviceMemory
from kevin_env.judge.workers.protection import find_held, sandbox_of
from kevin_env.judge.workers.worker import Worker

CLOSE_SECONDS = 5.0
"""For candidates that are being forked when the pool closes."""


class WarmPool:
    """Forks candidates and keeps some ready. Safe to use from many threads.

    Args:
        info: The device.
        memory: Bytes of host memory that a candidate may use.
        spares: Number of candidates to keep ready.
        limit: Limits the device memory of candidates; None on a CPU, or without NVML.
        server: A fork server that is already running; the pool takes ownership of it.
        gpu: The only GPU that candidates see; None: they see all.
        module: What candidates have imported besides torch and Triton.
    """

    def __init__(
        self, info: DeviceInfo, memory: int, spares: int, limit: DeviceMemory | None = None,
        server: ForkServer | None = None, gpu: Gpu | None = None, module: str = "",
    ) -> None:  # fmt: skip
        self._info = info
        self._memory = memory
        self._size = spares
        self._limit = limit
        self._gpu = gpu
        self._module = module
        self._server = self._warmed(server or self._new_server())
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._spares: list[Worker] = []
        self._starting = self._forking = 0
        self._lock = threading.Lock()
        self._forks = threading.Condition()
        self._closed = False
        self._held: frozenset[Protection] | None = None
        self._trying = threading.Lock()
        threading.Thread(target=self._try_protections, daemon=True).start()
        try:
            self.refill()
        except BaseException:  # the judge is being ended
            self.close()
            raise

    @contextmanager
    def candidate(self) -> Iterator[Worker]:
        """A candidate for one submission, which ends with the block. Do not hold the lane.

        Raises:
            JudgeError: if none starts.
        """
        worker = self.take()
        try:
            yield worker
        finally:
            self.retire(worker)

    def take(self) -> Worker:
        """A candidate for a submission; `retire` it. Errors as `candidate`."""
        return self.watched(self.take_trusted())

    def take_trusted(self) -> Worker:
        """As `take`, for trusted code: without a limit of device memory."""
        while True:
            with self._lock:
                worker = self._spares.pop() if self._spares else None
            if worker is None:
                return self._prepared()
            if not worker.answers_within(0.0):
                return worker
            worker.close()  # killed from outside, such as by the kernel when memory is short

    def with_context(self, worker: Worker, queues: int = 0) -> Worker:
        """A candidate that was taken, with a context for code of the judge. Errors as `candidate`.

        Args:
            worker: It ends if it gets none.
            queues: As of `Worker.create_context`.
        """
        try:
            with as_judge_error():
                worker.create_context(queues)
        except BaseException:
            worker.close()
            raise
        return worker

    def take_for_tools(self) -> Worker:
        """A candidate that has not touched the device, in which NVIDIA's tools start programs."""
        return self.watched(self._forked(tools=True))

    def watched(self, worker: Worker) -> Worker:
        """Limits the device memory of a candidate, and returns it."""
        if self._limit is not None:
            self._limit.watch(worker)
        return worker

    def retire(self, worker: Worker) -> None:
        """Ends a candidate and prepares another, which would disturb what is timed meanwhile."""
        if self._limit is not None:
            self._limit.forget(worker)
        worker.close()
        self.refill()

    def refill(self) -> None:
        """Starts spares that are missing, in other threads."""
        with self._lock:
            missing = max(0, self._size - len(self._spares) - self._starting)
            self._starting += missing
        for _ in range(missing):
            try:
                threading.Thread(target=self._add_spare, daemon=True).start()
            except RuntimeError:  # no more threads; the next `take` starts a candidate
                with self._lock:
                    self._starting -= 1

    def sandbox(self, worker: Worker) -> Sandbox:
        """Which protections hold for a candidate: what it tried itself, and others before it.

        Raises:
            JudgeError: if no candidate started to try them.
        """
        return sandbox_of(worker.held, self._held_by_all())

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
        for each in (Worker.dismiss, Worker.close):
            for worker in workers:
                each(worker)
        if self._limit is not None:
            self._limit.close()

    def _try_protections(self) -> None:
        with suppress(JudgeError, OSError):  # `sandbox` tries again, where it can be raised
            self._held_by_all()

    def _held_by_all(self) -> frozenset[Protection]:
        with self._trying:
            if self._held is None:
                self._held = find_held(self._forked)
            return self._held

    def _add_spare(self) -> None:
        worker = None
        try:
            with suppress(Exception):  # the next `take` meets the error, where it can be raised
                worker = self._prepared()
        finally:
            with self._lock:
                self._starting -= 1
                self._spares += [worker] if worker else []

    def _prepared(self) -> Worker:
        worker = self._forked()
        try:
            with as_judge_error():
                worker.prepare(self._info.processors)
        except BaseException:
            worker.close()
            raise
        return worker

    def _forked(self, memory: int | None = None, **more: Any) -> Worker:
        """A candidate that `close` ends, too. Arguments as of `Worker`."""
        device = self._info.device if self._gpu is None else "cuda:0"
        arguments, more = (device, memory or self._memory), {"gpu": self._gpu, **more}
        worker: Worker | None = None
        with self._forks:
            if self._closed:
                raise JudgeError("the judge is closed")
            self._forking += 1
        try:
            try:
                worker = Worker(self._alive_server(), *arguments, **more)
            except JudgeError:  # the fork server may have been ending, or did not answer
                worker = Worker(self._alive_server(), *arguments, **more)
            return worker
        finally:
            with self._forks:
                self._forking -= 1
                self._workers |= {worker} if worker else set()
                self._forks.notify_all()

    def _alive_server(self) -> ForkServer:
        with self._lock:
            if not self._server.alive and not self._closed:
                self._server.close()
                self._server = self._warmed(self._new_server())
            return self._server

    def _new_server(self) -> ForkServer:
        return ForkServer(self._info.device.partition(":")[0], module=self._module)

    def _warmed(self, server: ForkServer) -> ForkServer:
        if self._info.capability:
            server.warm(self._info.capability)
        return server
