"""The comparison of a verdict, with trees of tensors of this process."""

from functools import cache
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge.compare.outputs import (
    Allowed,
    Given,
    Make,
    MakePlain,
    Right,
    find_wrong_output,
)
from kevin_env.judge.compare.values import Mismatch, dtype_name


def wrong(
    expected: Any,
    got: Any,
    tolerance: float = 1.0,
    precision: str = "ieee",
    *,
    oracle: Make = lambda: None,
    plain: MakePlain | None = None,
    integers: str = "exact",
    input_set: str = "",
    allowed: Allowed | None = None,
) -> Mismatch | None:
    """What is wrong with the output `got`, or None. `allowed` is read and updated."""
    try:
        skeleton, tensors = tree.flatten(got)
    except tree.Unsupported as error:
        return Mismatch("type", str(error))
    right = Right(expected, cache(oracle), plain, tolerance, precision, integers)
    given = [given_of(tensor) for tensor in tensors]
    return find_wrong_output(right, skeleton, given, input_set, {} if allowed is None else allowed)


def given_of(tensor: torch.Tensor) -> Given:
    """The form and values of a tensor."""
    layout = None if tensor.layout == torch.strided else str(tensor.layout)
    form = tensor.device.type, layout, dtype_name(tensor.dtype), list(tensor.shape)
    return Given(*form, lambda: tensor)
