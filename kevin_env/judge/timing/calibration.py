"""The null model: a kernel of known length on a GPU, a call of nothing on a CPU.

Its links show what a timed call costs beyond the model's work.
"""

import math
import statistics
from functools import cached_property
from pathlib import Path

import torch

from kevin_env.candidate import null as model
from kevin_env.candidate import tree
from kevin_env.judge.handshake.handshake import FLUSH_FACTOR, HEAD_START
from kevin_env.judge.workers.errors import BASELINE_SECONDS
from kevin_env.judge.workers.worker import Worker

BYTES = 64 << 20
"""Bytes that are read, and as many written.

A kernel that spins instead has no TLB misses after a context switch: with such a null model, links
of kernels that read memory came out 3 to 7 us too long.
"""
CALLS = 15
CONSTANT_SPREAD = 3e-6
"""Seconds by which the constant of a link varies between timing sessions."""


def null_code() -> str:
    """The source of the null model."""
    return Path(str(model.__file__)).read_text(encoding="utf-8")


def construct_null(null: Worker, on_gpu: bool) -> None:
    """Constructs the null model; on a CPU it streams nothing."""
    init = tree.flatten([[BYTES if on_gpu else 0], {}])[0]
    null.ask(
        "construct", BASELINE_SECONDS, init=init, tensors=[], state={}, parameters=[], seed=0,
        compiled=False, precision="ieee",
    )  # fmt: skip


class Links:
    """What the judge knows of the links of one GPU.

    Args:
        device: The GPU.
        l2: Bytes of its L2.
    """

    def __init__(self, device: torch.device, l2: int) -> None:
        self._device = device
        self._l2 = l2
        self._least = math.inf

    @cached_property
    def known_seconds(self) -> float:
        """Seconds of the null model's kernel. Hold the lane at first use."""
        return stream_seconds(self._device, self._l2)

    def least_constant(self, seen: float) -> float:
        """The smallest constant of a link so far, `seen` included, with a margin."""
        self._least = min(self._least, seen)
        return self._least + CONSTANT_SPREAD


def stream_seconds(device: torch.device, l2: int) -> float:
    """Seconds of the null model's kernel with a cold L2, by events in this process.

    Hold the lane.
    """
    call, scratch = (
        model.ModelNew(BYTES, device),
        torch.empty(FLUSH_FACTOR * l2, dtype=torch.uint8, device=device),
    )
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
    call()
    for _ in range(HEAD_START):
        scratch.zero_()
    for start, stop in events:
        scratch.zero_()
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize(device)
    return statistics.median(start.elapsed_time(stop) for start, stop in events) / 1e3
