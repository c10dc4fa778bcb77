"""The memory that a judge shares with one process on a GPU: one allocation, mapped once.

Each allocation, export and mapping waits for a lock of the driver that all GPUs of a host share.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kevin_env.candidate.region import Part
from kevin_env.judge.handshake.handshake import FLAG_BYTES, LaunchFlags, Player
from kevin_env.judge.handshake.memory import SharedRegion, aligned, with_slack
from kevin_env.judge.timing.chain import GpuHandshake
from kevin_env.judge.workers.worker import Patience, Worker

CACHED_OUTPUTS, CACHED_SLACK, CACHED_SHARE = 3, 64 << 20, 1 / 16
"""A multiple of the outputs and some more, at most a share of the device's memory."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of images: of a call's inputs, of its right outputs, and of a model's weights."""

    inputs: int
    outputs: int
    weights: int

    @property
    def total(self) -> int:
        """Bytes of an arena of these sizes."""
        return sum(size for _, size in _laid_out(self).values())

    def cached(self, device: int | None) -> int:
        """Bytes that torch's allocator of a candidate has before the first call.

        Outputs come from there, so that none is allocated or mapped while it is called.

        Args:
            device: Memory of the device.
        """
        return min(CACHED_OUTPUTS * self.outputs + CACHED_SLACK, int(CACHED_SHARE * (device or 0)))

    def largest(self, other: "Sizes") -> "Sizes":
        """What is large enough for both."""
        pairs = (
            (self.inputs, other.inputs), (self.outputs, other.outputs),
            (self.weights, other.weights),
        )  # fmt: skip
        return Sizes(*map(max, pairs))


class Arena(GpuHandshake):
    """The handshake of one process on a GPU, with everything that the process shares.

    Args:
        device: The GPU.
        sizes: What it has to hold.
        l2: Bytes of the device's L2.

    Attributes:
        sizes: As given.
        weights: Where the weights of a model are handed over.

    Raises:
        torch.OutOfMemoryError: if it does not fit.
    """

    def __init__(self, device: torch.device, sizes: Sizes, l2: int) -> None:
        self.sizes = sizes
        self._parts = _laid_out(sizes)
        self._whole = SharedRegion(sum(size for _, size in self._parts.values()), device)
        words, weights, inbox, outbox = (
            Part(self._whole, *place) for place in self._parts.values()
        )
        self.weights = weights
        self._words = words
        try:
            super().__init__(device, inbox, outbox, l2, sizes.outputs)
            with beside(device):
                words.bytes.zero_()
        except BaseException:
            self._whole.close()
            raise

    def admit(
        self, worker: Worker, timeout: float | Patience, trusted: bool, serial: bool = False
    ) -> Player:
        """Lends the memory to a worker until it is closed; `serial` as of `Player`."""
        worker.ask("arena", timeout, parts=self._parts, **self._whole.order)
        return self.add(worker, trusted, LaunchFlags(self._words), serial)

    def close(self) -> None:
        """Unmaps and frees everything; the worker is left alone."""
        super().close()
        self._whole.close()


class Seat:
    """The memory of a process that lives on: an arena, replaced by one that is large enough.

    Args:
        device: The GPU.
        l2: Bytes of its L2.
        trusted: Whether the process runs trusted code.
    """

    def __init__(self, device: torch.device, l2: int, trusted: bool) -> None:
        self._device, self._l2, self._trusted = device, l2, trusted
        self._arena: Arena | None = None
        self._player: Player | None = None

    def of(self, worker: Worker, sizes: Sizes, seconds: float) -> tuple[Arena, Player]:
        """The memory, at least of these sizes, and the process in it.

        Args:
            worker: The same process until `close`.
            sizes: What is needed.
            seconds: For each order to the process.

        Raises:
            CandidateError: if it does not map the memory.
            torch.OutOfMemoryError: if there is none.
        """
        if self._arena is None or self._arena.sizes != self._arena.sizes.largest(sizes):
            before, self._arena, self._player = self._arena, None, None
            if before is not None:
                sizes = before.sizes.largest(sizes)
                worker.ask("rest", seconds)
                before.close()
            self._arena = Arena(self._device, sizes, self._l2)
        if self._player is None:
            self._player = self._arena.admit(worker, seconds, self._trusted, serial=True)
        return self._arena, self._player

    def unmap(self) -> None:
        """Unmaps memory of the process, such as what it has freed; what it names is mapped again.

        No output may be read afterwards.
        """
        if self._player is not None:
            self._player.mappings.close()

    def close(self) -> None:
        """Frees the memory, once the process has ended."""
        arena, self._arena, self._player = self._arena, None, None
        if arena is not None:
            arena.close()


@contextmanager
def beside(device: torch.device) -> Iterator[None]:
    """Inside, work is queued beside the chain of a submission in the lane; then it is done."""
    if device.type == "cpu":
        yield
        return
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        yield
    stream.synchronize()


def _laid_out(sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Offset and size of each part."""
    parts, end = dict[str, tuple[int, int]](), 0
    each = {
        "words": FLAG_BYTES, "weights": sizes.weights,
        "inbox": with_slack(sizes.inputs), "outbox": with_slack(sizes.outputs),
    }  # fmt: skip
    for name, size in each.items():
        parts[name] = end, aligned(max(size, 1))
        end += parts[name][1]
    return parts
