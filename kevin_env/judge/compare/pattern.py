"""What all wrong elements of an output have in common: where they are, and what they hold.

A pattern explains every wrong element and cannot be chance; most errors have none. Patterns leak no
secret: each judgement draws its inputs from a new one, so that outputs of earlier judgements do not
help, and feedback shows expected values of wrong elements anyway.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import torch

from kevin_env.judge.compare.chunked import Values, counts_of, most_of, places
from kevin_env.outcome import Pattern, Span

FEWEST = 4
"""Least number of wrong elements for a pattern."""
DENSE = 0.25
"""Least share of wrong elements in a region: some are right by chance, such as zeros after a ReLU.
"""
SURE = 16.0
"""Least number of elements outside a region that would be wrong at the density inside."""
EXPLAINED = 0.05
"""Largest share of the error (root mean square) that a factor or an offset may leave."""
SAMPLE = 1 << 14
"""Wrong elements that are tested for a factor, an offset and a transposition.

The first two are then verified on all of them; a transposition is not, as that would copy the
output.
"""
INDICES = 1 << 22
"""Longer dimensions are only examined as parts of the flattened output."""

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class _Wrong:
    """Where elements are wrong.

    Attributes:
        count: Their number.
        along: Their number by index, for each dimension that is not too long.
        ends: The first and the last, flattened.
        some: A sample of them, flattened.
    """

    count: int
    along: dict[int, torch.Tensor]
    ends: tuple[int, int]
    some: torch.Tensor


def pattern_of(wrong: Values, tensors: Tensors, allowed: float) -> Pattern | None:
    """The pattern of the wrong elements; None if there is none.

    Args:
        wrong: Computes a mask from pieces of `tensors`, which is true for at least one element.
        tensors: The submission's output, the reference's, and the oracle's or again the
            reference's.
        allowed: What an element may be off by, without its own rounding.
    """
    with suppress(torch.OutOfMemoryError):  # a detail of the message must not fail the judgement
        found = _found(wrong, tensors)
        what, value = _content(found, wrong, tensors, allowed)
        where = _region(found, tensors[0].shape)
        return Pattern(where=where, what=what, value=value) if where or what else None
    return None


def region_of(wrong: Values, *tensors: torch.Tensor) -> tuple[Span, ...]:
    """The region that contains all elements for which the mask is true; empty if there is none."""
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
    """Adds a piece's wrong elements by their index in one dimension of the whole."""
    inside = dim - sum(isinstance(index, int) for index in place)  # its number in the piece
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


def _content(
    found: _Wrong, wrong: Values, tensors: Tensors, allowed: float
) -> tuple[Literal["constant", "factor", "offset", "transposed"] | None, float | None]:
    """What the wrong elements hold, and its number."""
    at = torch.unravel_index(found.some, tensors[0].shape)
    got, exact = tensors[0][at].double(), tensors[2][at].double()
    error = got - exact
    few = tensors[0].dtype == torch.bool or found.count < FEWEST
    if few or not bool(torch.isfinite(error).all()):
        return None, None
    if bool((exact == exact[0]).all()):
        return None, None  # a factor and an offset are then the same
    eps = torch.finfo(tensors[0].dtype).eps if tensors[0].is_floating_point() else 0.0

    def explained(factor: float, offset: float, allowed: float) -> bool:
        """Whether every wrong element is `factor * expected + offset`."""

        def off(value: torch.Tensor, _: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            fit = factor * right.double() + offset
            near = allowed * max(1.0, abs(factor)) + 2 * eps * fit.abs()
            return ~((value.double() - fit).abs() <= near)

        left = (got - (factor * exact + offset)).square().sum()
        if bool(off(got, got, exact).any()) or bool(left > EXPLAINED**2 * error.square().sum()):
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
    """The elements at these places in memory if the last two dimensions were transposed."""
    if exact.dim() < 2 or min(exact.shape[-2:]) < 2:
        return None
    rows, columns = exact.shape[-2:]
    within = at % (rows * columns)
    other = at - within + within % rows * columns + within // rows
    return exact[torch.unravel_index(other, exact.shape)].double()
