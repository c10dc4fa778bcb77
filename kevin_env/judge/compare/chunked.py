"""Sums over tensors that leave no room for a whole copy of themselves: piece by piece.

What is held at once does not grow with the tensors. What is found of each piece stays on the device
until the last one is done, so that a GPU is waited for once. Tensors that are taken together have
one shape and any strides.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

PIECE = {"cuda": 1 << 24, "cpu": 1 << 18}
"""Most elements of a piece, by device. On a GPU a float64 copy of one has 128 MiB, of which the
longest expression of the comparison holds six, and a kernel over it takes ten times as long as its
launch. On a CPU 2 MiB, which stay in a cache.
"""


Values = Callable[..., torch.Tensor]
"""Makes a tensor of the shape of a piece from the same piece of each tensor."""


@dataclass(frozen=True)
class Size:
    """The largest magnitude of many numbers, and their root mean square. NaN where one of them is."""

    largest: float
    rms: float


def pieces(*tensors: torch.Tensor, each: int = 1) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same pieces of each tensor, as views, in the order of the elements; of an empty one an
    empty piece.

    They are cut along dimensions, since a flat view of a tensor whose elements lie in another order
    would be a copy.

    Args:
        tensors: Those after the first may have further dimensions, which are left whole.
        each: How many elements are held for one of the first tensor.
    """
    for place in places(tensors[0].shape, max(1, most_of(tensors[0]) // each)):
        yield tuple(tensor[place] for tensor in tensors)


def places(shape: torch.Size, most: int) -> Iterator[tuple[int | slice, ...]]:
    """What to index a tensor with to get its pieces of at most so many elements, one after the
    other.
    """
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
    """How many elements of a tensor a piece has at most."""
    return PIECE["cuda" if tensor.is_cuda else "cpu"]


def size_of(values: Values, *tensors: torch.Tensor) -> Size:
    """The size of the values, which are floating-point and at least one."""
    rows = _rows(lambda *piece: _magnitudes(values(*piece)), (2,), torch.float64, *tensors)
    largest, norm = torch.stack((rows[:, 0].amax(), torch.linalg.vector_norm(rows[:, 1]))).tolist()
    return Size(largest, norm / math.sqrt(tensors[0].numel()))


def spread_of(tensor: torch.Tensor) -> tuple[int, float]:
    """How many elements are finite, and their standard deviation (n - 1); exactly 0 where all are
    the same.

    Two passes over each piece, from which its first element was taken away. The pieces' means and
    sums of squared deviations are joined as in Chan, Golub and LeVeque, "Updating Formulae and a
    Pairwise Algorithm for Computing Sample Variances" (1979), equation 2.1, for any number of
    parts.
    """
    count, spread = _joined(tensor, lambda piece: piece)
    if not math.isfinite(spread):
        count, spread = _joined(tensor, lambda piece: piece[torch.isfinite(piece)])
    return count, math.inf if math.isnan(spread) else spread  # finite numbers whose squares are not


def counts_of(mask: Values, *tensors: torch.Tensor) -> list[int]:
    """Of how many elements of each piece the mask is true."""
    return _rows(lambda *piece: mask(*piece).sum(), (), torch.int64, *tensors).tolist()


def first_of(
    mask: Values, counts: list[int], most: int, *tensors: torch.Tensor
) -> list[tuple[int, ...]]:
    """Coordinates of the first elements of which the mask is true, where `counts_of` is known."""
    found: list[int] = []
    start = 0
    for piece, count in zip(pieces(*tensors), counts, strict=True):
        if count:
            found += [
                start + place for (place,) in mask(*piece).flatten().nonzero()[:most].tolist()
            ]
        if len(found) >= most:
            break
        start += piece[0].numel()
    return [_coordinates(place, tensors[0].shape) for place in found[:most]]


def largest_of(values: Values, most: int, *tensors: torch.Tensor) -> list[tuple[int, ...]]:
    """Coordinates of the largest values, from the largest one on."""
    peaks = _rows(lambda *piece: values(*piece).amax(), (), torch.float64, *tensors)
    among = set(peaks.topk(min(most, len(peaks))).indices.tolist())  # the pieces in which they lie
    found: list[tuple[float, int]] = []
    start = 0
    for i, piece in enumerate(pieces(*tensors)):
        if i in among:
            top = values(*piece).flatten().topk(min(most, piece[0].numel()))
            found += zip(top.values.tolist(), (start + top.indices).tolist(), strict=True)
        start += piece[0].numel()
    best = sorted(found, key=lambda each: -each[0])[:most]
    return [_coordinates(place, tensors[0].shape) for _, place in best]


def _rows(
    row: Values, shape: tuple[int, ...], dtype: torch.dtype, *tensors: torch.Tensor
) -> torch.Tensor:
    """What is found of each piece, in memory that is taken beforehand.

    Small tensors that are kept, between large ones that come and go, break a processor's heap up
    until it has grown by as much as the pieces together.
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
    """Number and standard deviation of chosen elements; NaN or infinite where one is."""
    deviations = _Deviations(chosen)
    found = _rows(deviations, (2,), torch.float64, tensor).tolist()
    rows = [(size, *row) for size, row in zip(deviations.sizes, found, strict=True)]
    count = sum(deviations.sizes)
    if count < 2:
        return count, 0.0
    middle = sum(size * mean for size, mean, _ in rows) / count
    squares = sum(
        norm * norm + size * (mean - middle) * (mean - middle) for size, mean, norm in rows
    )
    return count, math.sqrt(squares / (count - 1))


class _Deviations:
    """Of each piece the mean of what is chosen and the norm of what it is off by; their numbers in
    `sizes`.

    The mean is relative to the first element of all: of elements that are the same it is 0, without
    a rounding.
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
    """Of an element by its number."""
    found: list[int] = []
    for size in reversed(shape):
        place, at = divmod(place, size)
        found.append(at)
    return tuple(reversed(found))


def all_finite(outputs: list[torch.Tensor]) -> bool:
    """Whether every element of every tensor that could be something else is a finite number."""
    others = [t for t in outputs if t.is_floating_point() or t.is_complex()]
    return not any(sum(counts_of(lambda piece: ~_is_finite(piece), t)) for t in others)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, as float32 where it is fp8, which has few operators of its own."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


def _is_finite(values: torch.Tensor) -> torch.Tensor:
    return torch.isfinite(widened(values))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
