"""The process in which recorded submissions are played on a GPU, one after the other.

Of a submission it runs only the kernels. Its context lives on, so everything that a submission
leaves there is removed: modules are unloaded, and memory is overwritten. A submission that fails is
judged again in a process of its own, and this one is replaced by another that is ready.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch

from kevin_env.judge.handshake.arena import Arena, Seat, Sizes
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
        self._seat = Seat(device, l2, trusted=False)
        self._starting = ThreadPoolExecutor(1, "replayer")
        self._spare = self._starting.submit(start)
        self._worker: Worker | None = None
        self._played = 0

    def load(self, recording: Recording, sizes: Sizes) -> tuple[Worker, Arena, Player]:
        """The process with a recording loaded, and memory of these sizes.

        Raises:
            CandidateError: if the kernels cannot be loaded.
            JudgeError: if no process starts.
            torch.OutOfMemoryError: if there is no memory.
        """
        if self._worker is None or self._worker.answers_within(0.0) or self._played >= RENEWED:
            self.close()
            spare, self._spare = self._spare, self._starting.submit(self._start)
            self._worker = spare.result()
        self._played += 1
        arena, player = self._seat.of(self._worker, sizes, SECONDS)
        cases, kernels = recording.cases, recording.kernels
        self._worker.ask("recording", SECONDS, cases=cases, kernels=kernels)
        return self._worker, arena, player

    def clear(self) -> None:
        """Removes everything of the submission; a process that fails to is ended."""
        if self._worker is None:
            return
        try:
            if self._worker.ask("clear", SECONDS).get("trimmed"):
                self._seat.unmap()
        except CandidateError:
            self.close()

    def close(self) -> None:
        """Ends the process that plays; the other one takes its place when it is needed."""
        worker, self._worker, self._played = self._worker, None, 0
        if worker is not None:
            worker.close()
        self._seat.close()

    def end(self) -> None:
        """Ends both; none is started from then on."""
        self.close()
        self._starting.shutdown(cancel_futures=True)
        with suppress(Exception):
            self._spare.result().close()
