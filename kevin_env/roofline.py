"""What a kernel's time is held against: the work of a task, the ceilings of a device, and the
roofline that they make.

The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): a call takes at least as
long as moving its bytes at the memory's rate, and as its operations at the units' rate, whichever
is more. Here the work is what the reference does: the bytes that it reads of inputs and weights and
writes of outputs, each once, and its operations. The rates are those that trusted code was seen to
reach on this device.

So the roofline is a yardstick and no law. Algebra, Winograd or Fourier transforms do with fewer
operations than the reference, and a mask may spare bytes that it reads. A fraction above 1 is
therefore reported, and paid as 1.

Pure: bytes, seconds, bytes a second, and floating-point operations (FLOPs; a multiply-add is two) a
second.
"""

from typing import Annotated, Literal

from pydantic import Field

from kevin_env.frozen import Frozen

Arithmetic = Literal["fp32", "tf32", "fp16", "bf16", "fp64"]
"""What products are computed in: IEEE float32, TF32 where the problem admits it, and the types of
16 and 64 bits.
"""

Positive = Annotated[float, Field(gt=0)]

ABOVE = 1.1
"""A fraction beyond which a time is flagged: ceilings are measured, and so have an error of their
own.
"""


class Work(Frozen):
    """What one call of a reference does in one case."""

    read: int
    """Bytes of inputs and weights that it reads, each counted once."""
    written: int
    """Bytes of its outputs."""
    products: dict[Arithmetic, int]
    """FLOPs of matrix products, convolutions and attention."""
    operations: int
    """FLOPs of everything else: for each element of an operator's largest tensor one, or 16 of a
    transcendental.
    """

    @property
    def bytes(self) -> int:
        """All that has to cross the memory."""
        return self.read + self.written

    @property
    def flops(self) -> int:
        """All operations."""
        return sum(self.products.values()) + self.operations


class Ceilings(Frozen):
    """What a device was seen to reach."""

    reading: Positive
    """Bytes a second when it only reads."""
    copying: Positive
    """Bytes a second when it copies, read and written ones together."""
    rates: dict[Arithmetic, Positive]
    """FLOPs a second of products; those of `fp32` stand for all other operations."""

    @property
    def writing(self) -> float:
        """Bytes a second when it only writes: what is left of a copy's time. Twice as fast as
        reading at most.
        """
        return 1 / max(2 / self.copying - 1 / self.reading, 1 / (2 * self.reading))

    def memory_seconds(self, work: Work) -> float:
        """What moving the bytes takes."""
        return work.read / self.reading + work.written / self.writing

    def compute_seconds(self, work: Work) -> float:
        """What the operations take. Tensor cores and the other units work at the same time.

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
    """What a call takes at the roofline."""
    bound: Literal["memory", "compute"]
    """What holds it there."""
    memory_ceiling: float
    """Bytes a second of this task's mix of reads and writes, as the device was seen to reach them.
    """
    compute_ceiling: float
    """FLOPs a second of this task's mix of arithmetic, likewise."""
    bandwidth: float
    """Bytes a second that the call reached."""
    rate: float
    """FLOPs a second that the call reached."""
    fraction: float
    """Of the roofline that the call reached: 1 is on it. Not bounded; scores pay it up to 1."""

    @property
    def intensity(self) -> float | None:
        """FLOPs for each byte; None where nothing is moved."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def above(self) -> bool:
        """Whether the call was faster than the roofline, beyond what the ceilings' own error
        explains.
        """
        return self.fraction > ABOVE


def roofline_of(work: Work, ceilings: Ceilings, seconds: float) -> Roofline:
    """A call of `seconds`, more than 0, against the roofline of its task. Raises as
    `Ceilings.compute_seconds`.
    """
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
