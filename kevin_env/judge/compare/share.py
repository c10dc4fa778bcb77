"""The share of an output's tolerance that each element has.

One tolerance for a whole output is right where all of it has one scale. Where an output spans
orders of magnitude (exponentials, columns or heads of other scales), everything small would be
free. There an element has the share

    min(max(abs(y - c), s), S) / S

of the tolerance: y is the exact element, S the scale of the whole output, c its mean if that is far
from zero, and s the typical magnitude in the element's slices. Typical is the power mean of
exponent 1/8, which a few large elements hardly raise and a few tiny ones hardly lower. Zeros do
not count.

A slice is what one index of a dimension selects, such as a row, a column or a head. Only slices
that differ from the whole by more than `APART` count, each dimension by itself, and an output whose
typical magnitude is near its scale has one tolerance. Sums over slices are all that is needed.
"""

import math

import torch

from kevin_env.judge.compare.values import add_along, mapped, most_of, one_pass, places

APART = 16.0
"""Scales within this factor are one scale: no honest kernel is judged otherwise there."""
MOST_SLICED = 3
"""Most dimensions with slices apart that a GPU handles in one pass."""
FEW = 16
"""Fewer elements have no scale of their own."""
ROOTS = 3
"""Square roots taken one after the other: exponent 1/8."""
LEAST = torch.finfo(torch.float32).tiny / torch.finfo(torch.float32).eps
"""Magnitudes at which flushing denormal numbers to zero is an error of less than an ulp."""


def share_of(values: torch.Tensor, mean: float, spread: float) -> torch.Tensor | None:
    """The share of each element of a real output, as float32; None if all have all of it.

    Args:
        values: The exact output.
        mean: Of its finite elements.
        spread: Their standard deviation, which is the scale.
    """
    if not math.isfinite(spread):
        return None
    centre = mean if spread < abs(mean) else 0.0
    typical, ratios = _typical(values, centre)
    if not ratios and APART * typical >= spread:
        return None
    if one_pass(values) and len(ratios) <= MOST_SLICED:
        from kevin_env.judge.compare import kernels

        return kernels.share(values, centre, spread, typical, LEAST, ratios)
    least = values.new_full((1,) * values.dim(), max(typical, LEAST), dtype=torch.float64)
    for dim, ratio in ratios.items():
        least = least * ratio.view(-1, *[1] * (values.dim() - 1 - dim))

    def share(value: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
        away = (value.double() - centre).abs().nan_to_num(spread, spread)
        return torch.maximum(away, low.clamp(min=LEAST)).clamp_(max=spread).div_(spread)

    return mapped(share, torch.float32, values, least.expand(values.shape))


def _typical(values: torch.Tensor, centre: float) -> tuple[float, dict[int, torch.Tensor]]:
    """The typical magnitude, and by dimension that of each slice relative to it.

    It is twice the power mean, which is about the deviation of normal numbers. Relative to it, a
    slice that is not apart has 1; a dimension that has no slice apart is left out.
    """
    (total, counted), along = (_sums_on_gpu if one_pass(values) else _sums)(values, centre)
    mean = total / counted.clamp(min=1)
    ratios, some = dict[int, torch.Tensor](), list[torch.Tensor]()
    for dim, (sums, counts) in along.items():
        ratio = (sums / counts.clamp(min=1) / mean) ** 2**ROOTS
        apart = (counts >= FEW) & ((ratio > APART) | (ratio < 1 / APART))
        ratios[dim] = torch.where(apart, ratio, 1.0)
        some.append(apart.any().double())
    typical, *found = torch.stack((2 * mean**2**ROOTS, *some)).tolist()
    return typical, {
        dim: ratios[dim] for dim, any_apart in zip(ratios, found, strict=True) if any_apart
    }


Sums = tuple[torch.Tensor, dict[int, torch.Tensor]]
"""The sum of all roots and their number, and the same by dimension for each of its slices."""


def _sums(values: torch.Tensor, centre: float) -> Sums:
    total = values.new_zeros(2, dtype=torch.float64)
    along = {
        dim: values.new_zeros((2, values.shape[dim]), dtype=torch.float64)
        for dim in _sliced(values)
    }
    for place in places(values.shape, most_of(values)):
        away = (values[place].double() - centre).abs()
        counted = (away > LEAST) & torch.isfinite(away)
        roots = torch.where(counted, away, 0.0)
        for _ in range(ROOTS):
            roots.sqrt_()
        total += torch.stack((roots.sum(), counted.sum()))
        for dim, sums in along.items():
            add_along(sums[0], dim, place, roots)
            add_along(sums[1], dim, place, counted)
    return total, along


def _sums_on_gpu(values: torch.Tensor, centre: float) -> Sums:
    from kevin_env.judge.compare import kernels

    roots = kernels.eighth_roots(values, centre, LEAST)

    def summed(others: list[int]) -> torch.Tensor:
        counts = torch.linalg.vector_norm(roots, 0, others)  # `!=` would take 9 bytes an element
        return torch.stack((roots.sum(others).double(), counts.double()))

    every = list(range(values.dim()))
    along = {dim: summed([d for d in every if d != dim]) for dim in _sliced(values)}
    return summed(every), along


def _sliced(values: torch.Tensor) -> list[int]:
    """The dimensions whose slices may have a scale of their own."""
    sizes = enumerate(values.shape)
    return [dim for dim, size in sizes if size > 1 and values.numel() // size >= FEW]
