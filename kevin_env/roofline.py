"""The roofline of a task on a device, which a kernel's time is compared with.

The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): a call takes at least the
time to move its bytes at the memory's rate, and to do its operations at the units' rate. The work
is that of the reference: the bytes of inputs and weights that it reads and of outputs that it
writes, each once, and its operations. The rates were measured on this device with trusted code.

The roofline is not a strict limit: algebra, Winograd or Fourier transforms need fewer operations
than the reference, and a mask can save reads. So fractions above 1 are reported, and paid as 1.

Units: bytes, seconds, bytes per second, and floating-point operations (FLOPs; a multiply-add is
two) per second.
"""

from typing import Annotated, Literal

from pydantic import Field

from kevin_env.frozen import Frozen

Arithmetic = Literal["fp32", "tf32", "fp16", "bf16", "fp64"]
"""Arithmetic of products: IEEE float32, TF32 where the problem allows it, and 16 and 64 bits."""

Positive = Annotated[float, Field(gt=0)]

ABOVE = 1.1
"""Fraction above which a time is flagged, since the measured ceilings have errors."""


class Work(Frozen):
    """The work of one call of a reference in one case."""

    read: int
    """Bytes of inputs and weights that it reads, each counted once."""
    written: int
    """Bytes of its outputs."""
    products: dict[Arithmetic, int]
    """FLOPs of matrix products, convolutions and attention."""
    operations: int
    """FLOPs of everything else: per element of an operator's largest tensor 1, or 16 for a
    transcendental.
    """

    @property
    def bytes(self) -> int:
        """All bytes read and written."""
        return self.read + self.written

    @property
    def flops(self) -> int:
        """All operations."""
        return sum(self.products.values()) + self.operations


class Ceilings(Frozen):
    """Measured limits of a device."""

    reading: Positive
    """Bytes per second when it only reads."""
    copying: Positive
    """Bytes per second when it copies, read and written ones together."""
    rates: dict[Arithmetic, Positive]
    """FLOPs per second of products; the rate of `fp32` applies to all other operations."""

    @property
    def writing(self) -> float:
        """Bytes per second of writing, from the rate of copies; at most twice the reading rate."""
        return 1 / max(2 / self.copying - 1 / self.reading, 1 / (2 * self.reading))

    def memory_seconds(self, work: Work) -> float:
        """Seconds to move the bytes."""
        return work.read / self.reading + work.written / self.writing

    def compute_seconds(self, work: Work) -> float:
        """Seconds to do the operations. Tensor cores and the other units work in parallel.

        Raises:
            KeyError: if the rate of an arithmetic that the work needs was not measured.
        """
        plain = work.products.get("fp32", 0) + work.operations
        tensor = sum(
            flops / self.rates[kind] for kind, flops in work.products.items() if kind != "fp32"
        )
        return max(plain / self.rates["fp32"], tensor)


class Roofline(Frozen):
    """A measured call against its roofline."""

    bytes: int
    """That the task moves, each input, weight and output once."""
    flops: int
    """That the reference computes."""
    seconds: float
    """Seconds of a call at the roofline."""
    bound: Literal["memory", "compute"]
    """The limit that binds there."""
    memory_ceiling: float
    """Bytes per second of this task's mix of reads and writes, as measured on the device."""
    compute_ceiling: float
    """FLOPs per second of this task's mix of arithmetic, likewise."""
    bandwidth: float
    """Bytes per second that the call reached."""
    rate: float
    """FLOPs per second that the call reached."""
    fraction: float
    """Of the roofline that the call reached: 1 is on it. Not bounded; scores pay it up to 1."""

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte; None if nothing is moved."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def above(self) -> bool:
        """Whether the call beat the roofline by more than the error of the ceilings."""
        return self.fraction > ABOVE


def roofline_of(work: Work, ceilings: Ceilings, seconds: float) -> Roofline:
    """The roofline of a call of `seconds` > 0. Raises as `Ceilings.compute_seconds`."""
    memory, compute = ceilings.memory_seconds(work), ceilings.compute_seconds(work)
    return Roofline(
        bytes=work.bytes,
        flops=work.flops,
        seconds=max(memory, compute),
        bound="memory" if memory >= compute else "compute",
        memory_ceiling=work.bytes / memory if memory else ceilings.reading,
        compute_ceiling=work.flops / compute if compute else ceilings.rates["fp32"],
        bandwidth=work.bytes / seconds,
        rate=work.flops / seconds,
        fraction=max(memory, compute) / seconds,
    )
