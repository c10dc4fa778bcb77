"""What one call of a reference costs, counted by torch's dispatcher and measured."""

import time
from collections.abc import Callable
from typing import Any

import torch

from kevin_env.judge.device import event_seconds
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lint.report import Cost
from kevin_env.judge.lint.target import InputSet
from kevin_env.judge.roofline.roofline import Counting

CALLS = 5
GPU_CALLS = 20


def measure(case: Case, drawn: InputSet, peak: int) -> Cost:
    """Counts and times the reference on an input set.

    Args:
        case: With its weights drawn.
        drawn: Of this case; left as it is.
        peak: Bytes that were held at once while it was drawn.
    """
    call = case.runner(drawn.skeleton, [tensor.clone() for tensor in drawn.tensors])
    with Counting(case.precision) as counted:
        call()
    with case.process_state:
        seconds = (
            event_seconds(call, GPU_CALLS) if case.device.type == "cuda" else _seconds_cpu(call)
        )
    weights = list(case.model.state_dict().values())
    return Cost(
        seconds=seconds,
        peak_bytes=peak,
        flops=sum(counted.products.values()),
        elements=counted.elements,
        moved_bytes=_bytes([*drawn.tensors, *weights, *drawn.outputs]),
    )


def draw_watched(case: Case, distribution: str, number: int) -> tuple[InputSet, int]:
    """An input set, and the bytes that were held at once for it: on a CPU those of its inputs.

    Raises:
        ProblemError: when the reference fails.
    """
    if case.device.type != "cuda":
        drawn = InputSet.draw(case, distribution, number)
        return drawn, _bytes(drawn.tensors)
    torch.cuda.reset_peak_memory_stats(case.device)
    drawn = InputSet.draw(case, distribution, number)
    return drawn, torch.cuda.max_memory_allocated(case.device)


def _seconds_cpu(call: Callable[[], Any]) -> float:
    """The shortest of some calls: what disturbs on a CPU only ever lengthens."""
    seconds: list[float] = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)
