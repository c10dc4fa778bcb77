"""Elements of tensors by their numbers, in the order of the indices: no flat copy of a whole tensor
is made.

What lies contiguously is looked at where it is; of every other tensor the elements that are asked
for are gathered.
"""

from collections.abc import Callable, Iterator

import torch

from kevin_env.judge.compare.chunked import most_of

Elements = Callable[[slice], torch.Tensor]
"""Gives some elements of a tensor, all in one row. The slice has a start, an end and a step, within
the tensor.
"""
SAMPLE = 1 << 16
"""Elements that are looked at before all of them are."""


def elements(tensor: torch.Tensor, part: slice) -> torch.Tensor:
    """Those elements of a tensor of any strides, in one row: a view where they lie in order."""
    if tensor.is_contiguous():
        return tensor.view(-1)[part]
    left = torch.arange(part.start, max(part.start, part.stop), part.step, device=tensor.device)
    places = torch.zeros_like(left)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if stride:
            places += left % size * stride
        left //= size
    span = 1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return _gathered(tensor.as_strided((span,), (1,)), places)


def sample_of(count: int) -> slice:
    """About `SAMPLE` of so many elements, evenly spread; all where they are few."""
    return slice(0, count, max(1, -(-count // SAMPLE)))


def parts_of(tensor: torch.Tensor) -> Iterator[slice]:
    """Slices that together have all of a tensor's elements, each no more than a piece; first a
    sample of them.
    """
    count, most = tensor.numel(), most_of(tensor)
    if count > SAMPLE:
        yield sample_of(count)
    for start in range(0, count, most):
        yield slice(start, min(start + most, count), 1)


def _gathered(row: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    if row.element_size() > 1:
        return row[places]
    return row.view(torch.uint8)[places].view(
        row.dtype
    )  # fp8 cannot be indexed by a tensor everywhere
