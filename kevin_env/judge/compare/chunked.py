"""Reductions over tensors that are too large to copy: piece by piece.

Peak memory does not grow with the tensors. Results of pieces stay on the device until the last one,
so that a GPU is synchronized once. Tensors that are reduced together have one shape and any
strides.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

PIECE = {"cuda": 1 << 24, "cpu": 1 << 18}
"""Most elements per piece, by device.

On a GPU a float64 copy takes 128 MiB, of which the longest expression holds six, and a kernel over
it takes ten times as long as its launch. On a CPU it takes 2 MiB, which fit a cache.
"""

Values = Callable[..., torch.Tensor]
"""Computes a tensor of a piece's shape from the same piece of each tensor."""


@dataclass(frozen=True)
class Size:
    """The largest magnitude of some numbers, and their root mean square; NaN if any of them is."""

    largest: float
    rms: float


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same pieces of each tensor, as views in order; one empty piece for an empty tensor.

    They are cut along dimensions: flattening a tensor whose elements are in another order would
    copy it.
    """
    for place in places(tensors[0].shape, most_of(tensors[0])):
        yield tuple(tensor[place] for tensor in tensors)


def places(shape: torch.Size, most: int) -> Iterator[tuple[int | slice, ...]]:
    """Indices of a tensor's pieces of at most `most` elements, in order."""
    if math.prod(shape) <= most:
        yield ()
    elif (inner := math.prod(shape[1:])) > most:
        for i in range(shape[0]):
            yield from ((i, *rest) for rest in places(shape[1:], most))
    else:
        step = most // inner
        for start in range(0, shape[0], step):
            yield (slice(start, start + step),)


def most_of(tensor: torch.Tensor) -> int:
    """Most elements per piece of this tensor."""
    return PIECE["cuda" if tensor.is_cuda else "cpu"]


def mapped(values: Values, dtype: torch.dtype, *tensors: torch.Tensor) -> torch.Tensor:
    """The values, cast to `dtype`."""
    result = torch.empty_like(tensors[0], dtype=dtype)
    for place, *piece in pieces(result, *tensors):
        place.copy_(values(*piece))
    return result


def size_of(values: Values, *tensors: torch.Tensor) -> Size:
    """The size of the values, which are floating-point and not empty."""
    rows = _rows(lambda *piece: _magnitudes(values(*piece)), (2,), torch.float64, *tensors)
    largest, norm = torch.stack((rows[:, 0].amax(), torch.linalg.vector_norm(rows[:, 1]))).tolist()
    return Size(largest, norm / math.sqrt(tensors[0].numel()))


def spread_of(tensor: torch.Tensor) -> tuple[int, float]:
    """Number of finite elements and their standard deviation (n - 1); exactly 0 if all are equal.

    Two passes over each piece, after subtracting the first element. Means and sums of squared
    deviations are combined as in Chan, Golub and LeVeque, "Updating Formulae and a Pairwise
    Algorithm for Computing Sample Variances" (1979), equation 2.1, for any number of parts.
    """
    count, spread = _joined(tensor, lambda piece: piece)
    if not math.isfinite(spread):
        count, spread = _joined(tensor, lambda piece: piece[torch.isfinite(piece)])
    return count, math.inf if math.isnan(spread) else spread  # squares of finite numbers overflow


def counts_of(mask: Values, *tensors: torch.Tensor) -> list[int]:
    """For each piece, the number of elements for which the mask is true."""
    return _rows(lambda *piece: mask(*piece).sum(), (), torch.int64, *tensors).tolist()


def first_of(
    mask: Values, counts: list[int], most: int, *tensors: torch.Tensor
) -> list[tuple[int, ...]]:
    """Coordinates of the first elements for which the mask is true; `counts` as of `counts_of`."""
    positions: list[int] = []
    start = 0
    for piece, count in zip(pieces(*tensors), counts, strict=True):
        if count:
            positions += [
                start + place for (place,) in mask(*piece).flatten().nonzero()[:most].tolist()
            ]
        if len(positions) >= most:
            break
        start += piece[0].numel()
    return [_coordinates(place, tensors[0].shape) for place in positions[:most]]


def largest_of(values: Values, most: int, *tensors: torch.Tensor) -> list[tuple[int, ...]]:
    """Coordinates of the largest values, in descending order."""
    peaks = _rows(lambda *piece: values(*piece).amax(), (), torch.float64, *tensors)
    among = set(peaks.topk(min(most, len(peaks))).indices.tolist())  # pieces that contain them
    candidates: list[tuple[float, int]] = []
    start = 0
    for i, piece in enumerate(pieces(*tensors)):
        if i in among:
            top = values(*piece).flatten().topk(min(most, piece[0].numel()))
            candidates += zip(top.values.tolist(), (start + top.indices).tolist(), strict=True)
        start += piece[0].numel()
    best = sorted(candidates, key=lambda each: -each[0])[:most]
    return [_coordinates(place, tensors[0].shape) for _, place in best]


def _rows(
    row: Values, shape: tuple[int, ...], dtype: torch.dtype, *tensors: torch.Tensor
) -> torch.Tensor:
    """One row per piece, in memory that is allocated first.

    Small tensors kept between large temporary ones would fragment the heap until it has grown by
    the size of all pieces.
    """
    number = sum(1 for _ in pieces(tensors[0]))
    rows = torch.empty((number, *shape), dtype=dtype, device=tensors[0].device)
    for place, piece in zip(rows.unbind(), pieces(*tensors), strict=True):
        place.copy_(row(*piece))
    return rows


def _magnitudes(values: torch.Tensor) -> torch.Tensor:
    low, high = values.aminmax()  # on a CPU ten times as fast as a norm of infinite order
    return torch.stack((torch.maximum(-low, high), torch.linalg.vector_norm(values)))


def _joined(tensor: torch.Tensor, chosen: Values) -> tuple[int, float]:
    """Number and standard deviation of the chosen elements; NaN or infinite if one of them is."""
    deviations = _Deviations(chosen)
    sums = _rows(deviations, (2,), torch.float64, tensor).tolist()
    rows = [(size, *row) for size, row in zip(deviations.sizes, sums, strict=True)]
    count = sum(deviations.sizes)
    if count < 2:
        return count, 0.0
    middle = sum(size * mean for size, mean, _ in rows) / count
    squares = sum(
        norm * norm + size * (mean - middle) * (mean - middle) for size, mean, norm in rows
    )
    return count, math.sqrt(squares / (count - 1))


class _Deviations:
    """Mean and norm of the deviations of each piece's chosen elements; their numbers in `sizes`.

    Means are relative to the first element of all, so that equal elements give exactly 0.
    """

    def __init__(self, chosen: Values) -> None:
        self.sizes: list[int] = []
        self._chosen = chosen
        self._first: torch.Tensor | None = None

    def __call__(self, piece: torch.Tensor) -> torch.Tensor:
        kept = self._chosen(piece.double())
        self.sizes.append(kept.numel())
        if not kept.numel():
            return kept.new_zeros(2)
        if self._first is None:
            self._first = kept[(0,) * kept.dim()].clone()
        kept = kept - self._first
        mean = kept.mean()
        return torch.stack((mean, torch.linalg.vector_norm(kept.sub_(mean))))


def _coordinates(place: int, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(at) for at in np.unravel_index(place, shape))


def all_finite(outputs: list[torch.Tensor]) -> bool:
    """Whether every element of every tensor is finite."""
    return not any(
        sum(counts_of(lambda piece: ~is_finite(piece), t)) for t in outputs if is_rounded(t)
    )


def is_rounded(tensor: torch.Tensor) -> bool:
    """Whether its elements are floating-point or complex; all others are exact."""
    return tensor.is_floating_point() or tensor.is_complex()


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, as float32 if it is fp8, which has few operators."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


def is_finite(values: torch.Tensor) -> torch.Tensor:
    """As `torch.isfinite`, also of fp8."""
    return torch.isfinite(widened(values))


def real(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as a real one with a further dimension of two; any other as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
