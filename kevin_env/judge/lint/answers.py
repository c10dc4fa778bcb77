"""Trivial answers: what comes to mind of someone who does not want to do the work.

Each is made from what a lazy submission could have at hand, or from less than the whole of the expected output. A
problem that accepts one of them teaches it. Pure: tensors in, tensors out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Scene:
    """One output of one input set, and what lies around.

    Attributes:
        expected: What the reference gives; not empty.
        inputs: The tensors that it was given.
        other: What it gives for inputs from another seed; asked for only when needed.
        previous: What it gave for the input set before; asked for only when needed.
    """

    expected: torch.Tensor
    inputs: list[torch.Tensor]
    other: Callable[[], torch.Tensor]
    previous: Callable[[], torch.Tensor]


Answer = Callable[[], torch.Tensor]


def trivial_answers(scene: Scene) -> Iterator[tuple[str, Answer]]:
    """Name and maker of every trivial answer that makes sense for an output, the cheapest first.

    An answer that is the expected output by its form (the mean of one element, the signs of signs, a symmetric matrix
    transposed) says nothing and is left out.
    """
    expected = scene.expected
    yield "zeros", lambda: torch.zeros_like(expected)
    yield "ones", lambda: torch.ones_like(expected)
    for i, tensor in enumerate(scene.inputs):
        if (fitted := _fitted(tensor, expected)) is not None:
            yield f"input {i}", lambda fitted=fitted: _cast(fitted, expected.dtype)
    if expected.numel() > 1:
        yield from _constants(expected)
        yield from _halves(expected)
    yield from _distortions(expected)
    yield "the previous output", scene.previous
    yield "another seed's output", scene.other


def _constants(expected: torch.Tensor) -> Iterator[tuple[str, Answer]]:
    first = expected.flatten()[0]
    yield "the first element everywhere", lambda: first.expand(expected.shape)
    yield "the mean", lambda: _cast(_wide(expected).mean().expand(expected.shape), expected.dtype)
    if expected.dim() < 2:
        return
    for axis in range(expected.dim()):
        if expected.shape[axis] > 1:
            yield (
                f"the mean of axis {axis}",
                lambda axis=axis: _cast(
                    _wide(expected).mean(axis, keepdim=True).expand(expected.shape), expected.dtype
                ),
            )


def _halves(expected: torch.Tensor) -> Iterator[tuple[str, Answer]]:
    """The first half of the elements, in the order in which they lie."""
    flat = expected.flatten()
    half = -(-flat.numel() // 2)
    rest = flat.numel() - half
    yield "half of it, then zeros", lambda: torch.cat((flat[:half], torch.zeros_like(flat[half:]))).view(expected.shape)
    yield "half of it, twice", lambda: torch.cat((flat[:half], flat[:rest])).view(expected.shape)


def _distortions(expected: torch.Tensor) -> Iterator[tuple[str, Answer]]:
    if expected.dim() >= 2 and expected.shape[-1] == expected.shape[-2] > 1 and not _symmetric(expected):
        yield "it transposed", lambda: expected.mT
    signs = _cast(torch.sgn(_wide(expected)), expected.dtype)
    if not torch.equal(_wide(signs), _wide(expected)):
        yield "its signs", lambda: signs


def _fitted(tensor: torch.Tensor, expected: torch.Tensor) -> torch.Tensor | None:
    """The tensor in the shape of the output: reshaped, broadcast, or as much of its front as is needed."""
    if tensor.numel() == expected.numel():
        return tensor.reshape(expected.shape)
    if tensor.numel() > expected.numel():
        return tensor.flatten()[: expected.numel()].view(expected.shape)
    try:
        return tensor.expand(expected.shape)
    except RuntimeError:
        return None


def _symmetric(expected: torch.Tensor) -> bool:
    """Whether its matrices are symmetric down to rounding, as a formula makes them, and not only within a tolerance."""
    wide = _wide(expected)
    if not (expected.is_floating_point() or expected.is_complex()):
        return torch.equal(wide, wide.mT)
    share = min(64 * torch.finfo(expected.dtype).eps, 0.02)
    return bool((wide - wide.mT).abs().nan_to_num(0.0).max() <= share * wide.std())


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """As complex128 or float64, in which every dtype has all operators."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """In another dtype; what does not fit an integer may become any."""
    if tensor.is_complex() and not dtype.is_complex:
        tensor = tensor.real
    if tensor.is_floating_point() and not (dtype.is_floating_point or dtype.is_complex):
        tensor = tensor.double().nan_to_num(0.0, 0.0, 0.0).round()
    return tensor.to(dtype)
