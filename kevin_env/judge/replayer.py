"""The process in which recorded submissions are played on a GPU, one after the other.

It runs no code of a submission but its kernels. Its context lives on, so what one leaves there is
removed: modules are unloaded, and memory is overwritten. A submission that fails is judged again in
a process of its own, and this one is replaced by another that is ready.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import torch

from kevin_env.judge.handshake.arena import Arena, Sizes
from kevin_env.judge.handshake.handshake import Player
from kevin_env.judge.precompile import Recording
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import Worker

SECONDS = 10.0
"""For orders of which none takes long."""
RENEWED = 100
"""Submissions after which the process is replaced."""


class Replayer:
    """One process that plays, and one that is ready to take its place. Use it in the lane.

    Args:
        start: Returns a candidate with a context.
        device: The GPU.
        l2: Bytes of its L2.
    """

    def __init__(self, start: Callable[[], Worker], device: torch.device, l2: int) -> None:
        self._start = start
        self._device = device
        self._l2 = l2
        self._starting = ThreadPoolExecutor(1, "replayer")
        self._spare: Future[Worker] | None = None
        self._worker: Worker | None = None
        self._arena: Arena | None = None
        self._player: Player | None = None
        self._played = 0

    def load(self, recording: Recording, sizes: Sizes) -> tuple[Worker, Arena, Player]:
        """The process with a recording loaded, and memory of these sizes.

        Raises:
            CandidateError: if the kernels cannot be loaded.
            JudgeError: if no process starts.
            torch.OutOfMemoryError: if there is no memory.
        """
        if self._worker is None or not self._worker.waiting or self._played >= RENEWED:
            self.close()
            spare = self._spare or self._starting.submit(self._start)
            self._spare = self._starting.submit(self._start)
            self._worker = spare.result()
        self._played += 1
        arena, player = self._seated(self._worker, sizes)
        cases, kernels = recording.cases, recording.kernels
        self._worker.ask("recording", SECONDS, cases=cases, kernels=kernels)
        return self._worker, arena, player

    def clear(self) -> None:
        """Removes everything of the submission; a process that fails to is ended."""
        if self._worker is None:
            return
        try:
            self._worker.ask("clear", SECONDS)
        except CandidateError:
            self.close()

    def close(self) -> None:
        """Ends the process that plays; the other one takes its place when it is needed."""
        worker, arena = self._worker, self._arena
        self._worker, self._arena, self._player, self._played = None, None, None, 0
        if worker is not None:
            worker.close()
        if arena is not None:
            arena.close()

    def end(self) -> None:
        """Ends both; none is started from then on."""
        self.close()
        self._starting.shutdown(cancel_futures=True)
        if self._spare is not None:
            with suppress(Exception):
                self._spare.result().close()

    def _seated(self, worker: Worker, sizes: Sizes) -> tuple[Arena, Player]:
        if self._arena is None or self._arena.sizes != self._arena.sizes.largest(sizes):
            if self._arena is not None:
                sizes = self._arena.sizes.largest(sizes)
                worker.ask("rest", SECONDS)
                self._arena.close()
            self._arena = self._player = None
            self._arena = Arena(self._device, sizes, self._l2)
        if self._player is None:
            self._player = self._arena.admit(worker, SECONDS, trusted=False)
        return self._arena, self._player
