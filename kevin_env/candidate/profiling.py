"""Profiles calls from inside: dispatched operators, launched kernels, busy cores.

torch records it in the submission's process, which the submission may have rewritten: a claim, used
only as advice.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity
from torch.utils._python_dispatch import TorchDispatchMode

CALLS = 5
LONG_SECONDS = 0.5
"""A longer call is profiled once."""
MOST_LAUNCHES = 4000
MOST_OPERATORS = 200
LONGEST_NAME = 512
"""Characters of a kernel's name; templates make them arbitrarily long."""
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def profile_calls(call: Callable[[], object], device: torch.device, folder: Path) -> dict[str, Any]:
    """Profiles a few calls and returns the records as JSON; times in seconds, over all calls.

    Args:
        call: One call of the model.
        device: Where it runs.
        folder: For the profiler's file.
    """
    seconds = _timed(call, 1, device)[0]
    calls = CALLS if seconds < LONG_SECONDS else 1
    dispatched = _dispatched(call)
    _, busy = _timed(call, calls, device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with torch.profiler.profile(activities=activities) as profiler:
        seconds, _ = _timed(call, calls, device)
    seen = {each.key: each for each in profiler.key_averages()}
    return {
        "calls": calls,
        "seconds": seconds,
        "cores": busy if device.type == "cpu" else None,
        "host": sum(
            each.self_cpu_time_total for name, each in seen.items() if name.startswith("aten::")
        )
        / 1e6,
        "operators": [
            [name, count, seen[name].cpu_time_total / 1e6 if name in seen else None]
            for name, count in dispatched.most_common(MOST_OPERATORS)
        ],
        "launches": _launches(profiler, folder) if device.type == "cuda" else [],
    }


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def _dispatched(call: Callable[[], object]) -> Counter[str]:
    """Operators dispatched by one call, with counts."""
    with _Counting() as counting:
        call()
    return counting.counts


def _timed(call: Callable[[], object], calls: int, device: torch.device) -> tuple[float, float]:
    """Seconds that the calls take, and the average number of busy cores."""
    start, spent = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    return seconds, (time.process_time() - spent) / max(seconds, 1e-9)


def _launches(profiler: torch.profiler.profile, folder: Path) -> list[list[Any]]:
    """Work on the device in order: name, start, duration, grid, block, registers, shared memory."""
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    path.unlink()
    launches = sorted((e for e in events if e.get("cat") in _ON_DEVICE), key=lambda e: e["ts"])
    return [
        [
            e["name"][:LONGEST_NAME], e["ts"] / 1e6, e["dur"] / 1e6, e["args"].get("grid"),
            e["args"].get("block"),
            e["args"].get("registers per thread"), e["args"].get("shared memory"),
        ]
        for e in launches[:MOST_LAUNCHES]
    ]  # fmt: skip
