"""Means and spreads in float64 of tensors that leave no room for a float64 copy of themselves."""

import math
from collections.abc import Callable

import torch

from kevin_env.judge.compare.chunked import most_of, pieces, spread_of


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """As complex128 or float64, in which every dtype has all operators. For pieces: of a whole
    there may be no room.
    """
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def mean_of(tensor: torch.Tensor) -> torch.Tensor:
    """Of all elements, which are at least one: float64 or complex128, without a dimension."""
    total = wide(tensor.new_zeros(()))
    for (piece,) in pieces(tensor):
        total += wide(piece).sum()
    return total / tensor.numel()


def means_along(
    tensor: torch.Tensor, axis: int, cast: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The means along one axis, which is left out.

    Args:
        tensor: Not empty.
        axis: Of it.
        cast: Brings means, which it is given in float64 or complex128, to the dtype of the tensor.
    """
    found = torch.empty_like(tensor.select(axis, 0), memory_format=torch.contiguous_format)
    length = tensor.shape[axis]
    for means, rows in pieces(found, tensor.movedim(axis, -1), each=length):
        total = wide(torch.zeros_like(means))
        for part in rows.split(max(1, most_of(tensor) // means.numel()), -1):
            total += wide(part).sum(-1)
        means.copy_(cast(total / length))
    return found


def spread_of_all(tensor: torch.Tensor) -> float:
    """The standard deviation (n - 1) of floating-point or complex numbers; NaN where one of them is
    not finite.
    """
    parts = (
        torch.view_as_real(tensor.resolve_conj()).unbind(-1) if tensor.is_complex() else (tensor,)
    )
    found = [spread_of(part) for part in parts]
    return math.hypot(*(spread if count == tensor.numel() else math.nan for count, spread in found))
