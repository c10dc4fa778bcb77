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

    def admit(self, worker: Worker, timeout: float | Patience, trusted: bool) -> Player:
        """Lends the memory to a worker until it is closed."""
        worker.ask("arena", timeout, parts=self._parts, **self._whole.order)
        return self.add(worker, trusted, LaunchFlags(self._words))

    def close(self) -> None:
        """Unmaps and frees everything; the worker is left alone."""
        super().close()
        self._whole.close()


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
