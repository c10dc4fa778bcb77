"""The ceilings of a device: memory bandwidth and arithmetic, measured and cached in a user's file.

They are measured when first needed, alone on the device, in a fraction of a second. The best of
several tries counts, as disturbances only slow down. On a GPU memory is read far beyond the L2,
since the judge's inputs are cold. On a CPU, where data just written is cached, the rate is that of
a working set of the task's size.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from pydantic import Field

from kevin_env.frozen import Frozen
from kevin_env.judge.api import DeviceInfo
from kevin_env.judge.cache_file import CacheFile
from kevin_env.judge.device import event_seconds, identity
from kevin_env.judge.inputs.process_state import RANDOM, set_precision
from kevin_env.roofline import Arithmetic, Ceilings, Positive, Work

GPU_SET = 1 << 30
"""Bytes that are read on a GPU; far more than any L2 holds."""
CPU_SETS = tuple(1 << power for power in (20, 22, 24, 26))
"""Working sets on a CPU; the smallest that holds a task counts."""
TRIES = 5
"""Number of measurements on a GPU, of which the median counts."""
SECONDS = 0.04
"""How long tries go on for each figure: a GPU takes some milliseconds to raise its clocks."""
CPU_SIDE = 384
GPU_SIDES: Mapping[Arithmetic, int] = {"fp32": 4096, "fp64": 4096}
GPU_SIDE = 8192
"""Side of the square matrices that are multiplied; smaller if a product takes longer."""
PLAIN: Arithmetic = "fp32"

_DTYPES: Mapping[Arithmetic, torch.dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp64": torch.float64,
}


class Measured(Frozen):
    """Bytes per second by working set, and FLOPs per second."""

    reading: dict[int, Positive] = Field(default_factory=dict[int, float])
    copying: dict[int, Positive] = Field(default_factory=dict[int, float])
    rates: dict[Arithmetic, Positive] = Field(default_factory=dict[Arithmetic, float])


class CeilingStore:
    """The ceilings of one device, each measured once. Use it in the lane.

    Args:
        device: Of the judge.
        info: Its limits.
    """

    def __init__(self, device: torch.device, info: DeviceInfo) -> None:
        self._device = device
        self._threads = info.processors
        names = {"device": identity(device), "name": info.name, "processors": str(info.processors)}
        key = names | {name: info.versions.get(name, "") for name in ("driver", "torch")}
        self._file = CacheFile("ceilings", key, Measured)
        self._measured = self._file.read() or Measured()
        self._own: set[int | str] = set()

    def of(self, work: Work, again: bool = False) -> Ceilings:
        """The ceilings for this work.

        Args:
            work: Determines the working set and the arithmetic.
            again: Whether to measure again what was read from the file; the higher figures count.
        """
        size = self._set(work)
        self._measure([size], dict.fromkeys((PLAIN, *work.products)), again)
        known = self._measured
        return Ceilings(reading=known.reading[size], copying=known.copying[size], rates=known.rates)

    def find_all(self) -> None:
        """Measures everything that is unknown for a GPU, before there is a submission.

        A process can be stopped, but what it has queued on a GPU cannot. Without enough memory it
        is left for later.
        """
        with contextlib.suppress(torch.OutOfMemoryError):
            self._measure([GPU_SET], _DTYPES)

    def _set(self, work: Work) -> int:
        if self._device.type == "cuda":
            return GPU_SET
        return next((size for size in CPU_SETS if size >= work.bytes), CPU_SETS[-1])

    def _measure(
        self, sizes: Iterable[int], kinds: Iterable[Arithmetic], again: bool = False
    ) -> None:
        """Measures what is unknown, or with `again` what this process has not measured."""
        before = self._measured
        known = self._own if again else {*before.reading.keys() & before.copying, *before.rates}
        sizes, kinds = (
            [each for each in sizes if each not in known],
            [each for each in kinds if each not in known],
        )
        if not sizes and not kinds:
            return
        reading, copying, rates = dict(before.reading), dict(before.copying), dict(before.rates)
        with _all_threads(self._device, self._threads):
            for size in sizes:
                read, copied = memory_rates(self._device, size)
                reading[size], copying[size] = (
                    max(read, reading.get(size, 0)),
                    max(copied, copying.get(size, 0)),
                )
            for kind in kinds:
                rates[kind] = max(product_rate(self._device, kind), rates.get(kind, 0))
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
        self._own |= {*sizes, *kinds}
        self._measured = Measured(reading=reading, copying=copying, rates=rates)
        self._file.write(self._measured)


def memory_rates(device: torch.device, size: int) -> tuple[float, float]:
    """Bytes per second of reading `size` bytes, and of copying one half of them to the other."""
    data = torch.ones(size // 4, device=device)
    here, there = data[: size // 8], data[size // 8 :]
    return size / _seconds(device, data.sum), size / _seconds(device, lambda: there.copy_(here))


def product_rate(device: torch.device, kind: Arithmetic) -> float:
    """FLOPs per second of a product of square matrices.

    On a CPU the fastest of several: not every layout is fast for every type, and a kernel may
    convert its operands to float32.
    """
    side = GPU_SIDES.get(kind, GPU_SIDE) if device.type == "cuda" else CPU_SIDE
    with RANDOM:
        set_precision("tf32" if kind == "tf32" else "ieee")
        a, b = (torch.randn(side, side, device=device).to(_DTYPES[kind]) for _ in range(2))
        if device.type == "cuda":
            return 2 * side**3 / _seconds(device, lambda: a @ b)
        wide = [t.to(torch.promote_types(t.dtype, torch.float32)) for t in (a, b)]
        shortest = min(
            _seconds(device, call)
            for call in (lambda: a @ b, lambda: a @ b.T, lambda: wide[0] @ wide[1])
        )
        return 2 * side**3 / shortest


def _seconds(device: torch.device, call: Callable[[], object]) -> float:
    """The shortest call of those that begin within `SECONDS`."""
    one = (lambda: event_seconds(call, TRIES)) if device.type == "cuda" else (lambda: clocked(call))
    began = time.perf_counter()
    best = one()
    while time.perf_counter() - began < SECONDS:
        best = min(best, one())
    return best


def clocked(call: Callable[[], object]) -> float:
    """Seconds of one call on a CPU."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextlib.contextmanager
def _all_threads(device: torch.device, threads: int) -> Iterator[None]:
    """Lets torch use as many threads as a candidate may."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
