"""What wrong elements have in common: the region that contains all of them, or a narrower type.

A region cannot be chance; most errors have none. It leaks no secret: each judgement draws its
inputs from a new one, and feedback shows expected values of wrong elements anyway.
"""

import math
from contextlib import suppress
from dataclasses import dataclass

import torch

from kevin_env.judge.compare.values import Values, add_along, counts_of, most_of, places
from kevin_env.outcome import Pattern, Span

FEWEST = 4
"""Least number of wrong elements in a region."""
DENSE = 0.25
"""Least share of wrong elements in a region: some are right by chance, such as zeros after a ReLU.
"""
SURE = 16.0
"""Least number of elements outside a region that would be wrong at the density inside."""
INDICES = 1 << 22
"""Longer dimensions are only examined as parts of the flattened output."""


_NARROWER = {
    torch.float64: {"float32": torch.float32},
    torch.float32: {"bfloat16": torch.bfloat16, "float16 or TF32": torch.float16, "TF32": None},
    torch.float16: {"bfloat16": torch.bfloat16},
}
"""Types that an output of a type may have been rounded to; the first that fits is reported."""
COARSEST = 2.0**-7
"""The error of an output through rounding to the coarsest of them, relative to its largest value.

One that is further off is wrong for another reason, such as a constant.
"""


def narrower(output: torch.Tensor, error: float | None, largest: float) -> str:
    """The narrower type in which all elements of a wrong output are exact; empty if there is none.

    Args:
        output: The output.
        error: Its largest error.
        largest: The largest magnitude of what was expected.
    """
    if error is None or not error <= COARSEST * largest:
        return ""

    def inexact(piece: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
        if dtype is None:
            return piece.contiguous().view(torch.int32) & 0x1FFF != 0
        return piece.to(dtype).to(piece.dtype) != piece

    for name, dtype in _NARROWER.get(output.dtype, {}).items():
        if not any(counts_of(lambda piece, dtype=dtype: inexact(piece, dtype), output)):
            return name
    return ""


@dataclass(frozen=True)
class _Wrong:
    """Where elements are wrong.

    Attributes:
        count: Their number.
        along: Their number by index, for each dimension that is not too long.
        ends: The first and the last, flattened.
    """

    count: int
    along: dict[int, torch.Tensor]
    ends: tuple[int, int]


def pattern_of(wrong: Values, *tensors: torch.Tensor) -> Pattern | None:
    """The region that contains all wrong elements; None if there is none.

    Args:
        wrong: Computes a mask from pieces of `tensors`, which is true for at least one element.
        tensors: Of one shape.
    """
    with suppress(torch.OutOfMemoryError):  # a detail of the message must not fail the judgement
        where = _region(_found(wrong, tensors), tensors[0].shape)
        return Pattern(where=where) if where else None
    return None


def _found(wrong: Values, tensors: tuple[torch.Tensor, ...]) -> _Wrong:
    shape, device = tensors[0].shape, tensors[0].device
    along = {
        d: torch.zeros(n, dtype=torch.int64, device=device)
        for d, n in enumerate(shape)
        if n <= INDICES
    }
    begin = count = 0
    ends: list[int] = []
    for place in places(shape, most_of(tensors[0])):
        mask = wrong(*(tensor[place] for tensor in tensors))
        at = mask.flatten().nonzero().flatten()
        if number := at.numel():
            ends += (begin + at[[0, -1]]).tolist()
            for dim, numbers in along.items():
                add_along(numbers, dim, place, mask)
        count, begin = count + number, begin + mask.numel()
        del mask, at  # before the next piece
    return _Wrong(count, along, (ends[0], ends[-1]))


def _region(found: _Wrong, shape: torch.Size) -> tuple[Span, ...]:
    total, (first, last) = math.prod(shape), found.ends
    spans = tuple(
        span for dim, along in found.along.items() if (span := _span(dim, along)) is not None
    )
    inside = total
    for span in spans:
        inside = inside // span.size * len(range(span.start, span.stop, span.step))
    between = last + 1 - first
    if _sure(found.count, between, inside):  # such as all elements from the thousandth on
        spans, inside = (Span(dim=None, start=first, stop=last + 1, size=total),), between
    return spans if _sure(found.count, inside, total) else ()


def _span(dim: int, along: torch.Tensor) -> Span | None:
    """The indices of a dimension that have wrong elements, if contiguous or every k-th.

    None if all have some.
    """
    at, size = along.nonzero().flatten(), along.numel()
    start, last = int(at[0]), int(at[-1])
    steps = at.diff().unique().tolist()
    if len(steps) == 1 and steps[0] > 1 and at.numel() >= FEWEST:
        return Span(dim=dim, start=start, stop=min(size, last + steps[0]), step=steps[0], size=size)
    if (start, last + 1) == (0, size):
        return None
    return Span(dim=dim, start=start, stop=last + 1, size=size)


def _sure(count: int, inside: int, total: int) -> bool:
    """Whether it cannot be chance that all wrong elements of `total` are among these."""
    density = count / inside
    return count >= FEWEST and density >= DENSE and density * (total - inside) >= SURE
