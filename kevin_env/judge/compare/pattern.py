"""What all wrong elements of an output have in common: where they are, and what they hold.

Only what explains every wrong element, and cannot be chance, is a pattern; most errors have none.
Patterns leak no secret: the inputs of every judgement are drawn from a new one, so knowing the
outputs of an earlier judgement does not help, and feedback has expected values of wrong elements
anyway.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import torch

from kevin_env.judge.compare.chunked import Values, counts_of, most_of, places
from kevin_env.outcome import Pattern, Span

FEWEST = 4
"""Wrong elements from which on there can be a pattern."""
DENSE = 0.25
"""Share of a region's elements that are wrong at least: some are right by chance, such as zeros
after a ReLU.
"""
SURE = 16.0
"""Elements outside of a region that would be wrong if they were as dense there as in it, at least.
"""
EXPLAINED = 0.05
"""What a factor or an offset leaves of the error at most (root mean square)."""
SAMPLE = 1 << 14
"""Wrong elements that are looked at for a factor, an offset and a transposition; the first two are
then verified on all of them. A transposition is not: that would take a copy of the output.
"""
INDICES = 1 << 22
"""Longer dimensions are only looked at as parts of the flattened output."""

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class _Wrong:
    """Where elements are wrong.

    Attributes:
        count: How many are.
        along: How many by the index of each dimension that is not too long.
        ends: The first and the last, flattened.
        some: A sample of them, flattened.
    """

    count: int
    along: dict[int, torch.Tensor]
    ends: tuple[int, int]
    some: torch.Tensor


def pattern_of(wrong: Values, tensors: Tensors, allowed: float) -> Pattern | None:
    """The pattern of the elements that are wrong; None without any.

    Args:
        wrong: Makes a mask of them from pieces of `tensors`; it is true of one at least.
        tensors: The submission's output, the reference's, and the oracle's, or again the
            reference's.
        allowed: What an element may be off by, without its own rounding.
    """
    with suppress(torch.OutOfMemoryError):  # for the sake of a message no submission fails
        found = _found(wrong, tensors)
        what, value = _content(found, wrong, tensors, allowed)
        where = _region(found, tensors[0].shape)
        return Pattern(where=where, what=what, value=value) if where or what else None
    return None


def region_of(wrong: Values, *tensors: torch.Tensor) -> tuple[Span, ...]:
    """The region that has all elements of which the mask is true; empty where there is none."""
    return _region(_found(wrong, tensors), tensors[0].shape)


def _found(wrong: Values, tensors: tuple[torch.Tensor, ...]) -> _Wrong:
    shape, device = tensors[0].shape, tensors[0].device
    along = {
        d: torch.zeros(n, dtype=torch.int64, device=device)
        for d, n in enumerate(shape)
        if n <= INDICES
    }
    cut = list(places(shape, most_of(tensors[0])))
    each, begin, count = SAMPLE // len(cut) + 1, 0, 0
    ends: list[int] = []
    some: list[torch.Tensor] = []
    for place in cut:
        mask = wrong(*(tensor[place] for tensor in tensors))
        at = mask.flatten().nonzero().flatten()
        if number := at.numel():
            ends += (begin + at[[0, -1]]).tolist()
            some.append(begin + at[:: -(-number // each)])
            for dim, numbers in along.items():
                _add(numbers, dim, place, mask)
        count, begin = count + number, begin + mask.numel()
    return _Wrong(count, along, (ends[0], ends[-1]), torch.cat(some))


def _add(
    numbers: torch.Tensor, dim: int, place: tuple[int | slice, ...], mask: torch.Tensor
) -> None:
    """Adds how many elements of a piece are wrong by their index in one dimension of the whole."""
    inside = dim - sum(
        isinstance(index, int) for index in place
    )  # the dimension's number in the piece
    others = [d for d in range(mask.dim()) if d != inside]
    numbers[place[dim] if dim < len(place) else slice(None)] += mask.sum(others) if others else mask


def _region(found: _Wrong, shape: torch.Size) -> tuple[Span, ...]:
    total, (first, last) = math.prod(shape), found.ends
    spans = tuple(
        span for dim, along in found.along.items() if (span := _span(dim, along)) is not None
    )
    inside = total
    for span in spans:
        inside = inside // span.size * len(range(span.start, span.stop, span.step))
    between = last + 1 - first
    if _sure(
        found.count, between, inside
    ):  # such as all from the thousandth on, in the middle of a row
        spans, inside = (Span(dim=None, start=first, stop=last + 1, size=total),), between
    return spans if _sure(found.count, inside, total) else ()


def _span(dim: int, along: torch.Tensor) -> Span | None:
    """The indices of a dimension that have wrong elements, if they are not all: contiguous, or
    every k-th.
    """
    at, size = along.nonzero().flatten(), along.numel()
    start, last = int(at[0]), int(at[-1])
    steps = at.diff().unique().tolist()
    if len(steps) == 1 and steps[0] > 1 and at.numel() >= FEWEST:
        return Span(dim=dim, start=start, stop=min(size, last + steps[0]), step=steps[0], size=size)
    return (
        None
        if (start, last + 1) == (0, size)
        else Span(dim=dim, start=start, stop=last + 1, size=size)
    )


def _sure(count: int, inside: int, total: int) -> bool:
    """Whether it is no chance that all wrong elements of `total` are among these."""
    density = count / inside
    return count >= FEWEST and density >= DENSE and density * (total - inside) >= SURE


def _content(
    found: _Wrong, wrong: Values, tensors: Tensors, allowed: float
) -> tuple[Literal["constant", "factor", "offset", "transposed"] | None, float | None]:
    """What the wrong elements hold, and the number that belongs to it."""
    at = torch.unravel_index(found.some, tensors[0].shape)
    got, exact = tensors[0][at].double(), tensors[2][at].double()
    error = got - exact
    if (
        tensors[0].dtype == torch.bool
        or found.count < FEWEST
        or not bool(torch.isfinite(error).all())
    ):
        return None, None
    if bool((exact == exact[0]).all()):
        return None, None  # a factor and an offset are then the same
    eps = torch.finfo(tensors[0].dtype).eps if tensors[0].is_floating_point() else 0.0

    def explained(factor: float, offset: float, allowed: float) -> bool:
        """Whether every wrong element is the expected one, changed so."""

        def off(value: torch.Tensor, _: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            told = factor * right.double() + offset
            return ~(
                (value.double() - told).abs()
                <= allowed * max(1.0, abs(factor)) + 2 * eps * told.abs()
            )

        left = got - (factor * exact + offset)
        if bool(off(got, got, exact).any()) or bool(
            left.square().sum() > EXPLAINED**2 * error.square().sum()
        ):
            return False
        return not sum(counts_of(lambda *piece: wrong(*piece) & off(*piece), *tensors))

    value, factor, offset = float(got[0]), float(got @ exact / (exact @ exact)), float(error.mean())
    if bool((got == value).all()):
        return ("constant", value + 0.0) if explained(0.0, value, 0.0) else (None, None)
    scaled, moved = explained(factor, 0.0, allowed), explained(1.0, offset, allowed)
    if scaled != moved:
        return ("factor", factor) if scaled else ("offset", offset)
    other = _transposed(found.some, tensors[2])
    same = other is not None and bool(
        ((got - other).abs() <= allowed + 2 * eps * other.abs()).all()
    )
    return ("transposed" if same else None), None


def _transposed(at: torch.Tensor, exact: torch.Tensor) -> torch.Tensor | None:
    """What the output with its last two dimensions transposed has at these places in memory."""
    if exact.dim() < 2 or min(exact.shape[-2:]) < 2:
        return None
    rows, columns = exact.shape[-2:]
    within = at % (rows * columns)
    other = at - within + within % rows * columns + within // rows
    return exact[torch.unravel_index(other, exact.shape)].double()
