"""Compares an output tensor with the reference's, and describes what is wrong with it.

Tensors are looked at piece by piece, so that peak memory does not grow with them. Results of pieces
stay on the device until the last one, so that a GPU is synchronized once. Tensors that are compared
have one shape and any strides.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from kevin_env.outcome import Difference, Pattern

SHOWN = 5
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


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with one output: a kind of `Incorrect`, and details.

    Attributes:
        output: Its path, such as `[1]['mean']`; empty for the whole.
    """

    kind: str
    message: str
    wrong: int | None = None
    total: int | None = None
    worst_error: float | None = None
    tolerance: float | None = None
    differences: tuple[Difference, ...] = ()
    pattern: Pattern | None = None
    output: str = ""


def of_form(shape: list[int], dtype: str, reference: torch.Tensor) -> Mismatch | None:
    """A wrong shape or dtype."""
    if shape != (wanted := list(reference.shape)):
        return Mismatch("shape", f"expected shape {wanted}, got {shape}")
    if dtype != (name := dtype_name(reference.dtype)):
        return Mismatch("dtype", f"expected {name}, got {dtype}")
    return None


def of_elements(
    wrong: Values,
    tensors: tuple[torch.Tensor, ...],
    allowed: float,
    what: str,
    kind: str = "values",
    error: float | None = None,
) -> Mismatch | None:
    """The elements that are wrong, with examples; None if there are none.

    Args:
        wrong: Computes a mask of wrong elements from pieces of `tensors`.
        tensors: The submission's output first, the expected output second or, of more, third.
        allowed: The error that each may have.
        what: The end of the message: what is wrong with them.
        kind: Kind of the mismatch.
        error: The largest error, if it is shown.
    """
    counts, total = counts_of(wrong, *tensors), tensors[0].numel()
    count = sum(counts)
    if count == 0:
        return None
    shown = _differences(first_of(wrong, counts, SHOWN, *tensors), tensors)
    text = f"{count} of {total} elements ({100 * count / total:.3g} %) {what}"
    return Mismatch(kind, text, count, total, error, allowed, shown)


def _differences(
    places: Iterable[tuple[int, ...]], tensors: tuple[torch.Tensor, ...]
) -> tuple[Difference, ...]:
    got, expected = tensors[0], tensors[:3][-1]
    return tuple(
        Difference(index=at, expected=_number(expected[at].to(got.dtype)), got=_number(got[at]))
        for at in places
    )


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype such as `float32`."""
    return str(dtype).removeprefix("torch.")


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


def difference_of(
    got: torch.Tensor,
    wanted: torch.Tensor,
    share: torch.Tensor | None = None,
    *,
    wide: torch.dtype,
    rounding: float = 0.0,
) -> Size:
    """The size of the differences; not finite if any of them is not.

    Args:
        got: One tensor.
        wanted: The other, which may be `float64`.
        share: What each difference is divided by, as `float32`; None: by 1.
        wide: The precision of the differences, `float32` or `float64`.
        rounding: The largest difference is reduced by this share of the wanted value.
    """
    tensors = (got, wanted) if share is None else (got, wanted, share)
    if one_pass(*tensors):
        from kevin_env.judge.compare import kernels

        return kernels.difference(got, wanted, share, wide, rounding)

    def row(
        value: torch.Tensor, right: torch.Tensor, part: torch.Tensor | float = 1.0
    ) -> torch.Tensor:
        right = right.to(wide)
        off = (value.to(wide) - right).abs_()
        norm = torch.linalg.vector_norm(off / part)
        return torch.stack(((off.sub_(right.abs(), alpha=rounding) / part).amax(), norm))

    rows = _rows(row, (2,), torch.float64, *tensors)
    largest, norm = torch.stack((rows[:, 0].amax(), torch.linalg.vector_norm(rows[:, 1]))).tolist()
    return Size(largest, norm / math.sqrt(got.numel()))


def one_pass(*tensors: torch.Tensor) -> bool:
    """Whether `kevin_env.judge.compare.kernels` is used for these tensors."""
    return all(
        each.is_cuda and each.numel() and each.is_contiguous() and each.is_floating_point()
        for each in tensors
    )


def spread_of(tensor: torch.Tensor) -> tuple[int, float, float]:
    """Number of finite elements, their mean and their standard deviation (n - 1).

    The deviation is exactly 0 if all are equal, and for fewer than two.

    Means and sums of squared deviations of parts are combined as in Chan, Golub and LeVeque,
    "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979), equation
    2.1, for any number of parts.
    """
    rows, start = _spread_rows(tensor)
    counts, means, squares = rows.cpu().unbind(1)
    count, one = int(counts.sum()), means[counts.argmax()]
    means = torch.where(counts > 0, means - one, 0.0)
    mean = (counts * means).sum() / max(1, count)
    total = float((squares + counts * (means - mean).square()).sum())
    spread = math.inf if math.isnan(total) else math.sqrt(total / max(1, count - 1))
    return count, float(start + one + mean), spread if count > 1 else 0.0


def _spread_rows(tensor: torch.Tensor) -> tuple[torch.Tensor, float]:
    """For each part its finite elements, their mean, and the sum of squared deviations from it.

    Means are relative to the number that follows.
    """
    if one_pass(tensor):
        from kevin_env.judge.compare import kernels

        return kernels.spread_rows(tensor), 0.0
    start = _a_finite_element(tensor)

    def row(piece: torch.Tensor) -> torch.Tensor:
        finite = is_finite(piece)
        off = torch.where(finite, piece.double() - start, 0.0)
        mean = off.sum() / finite.sum().clamp(min=1)
        norm = torch.linalg.vector_norm(torch.where(finite, off.sub_(mean), 0.0))
        return torch.stack((finite.sum(), mean, norm.square()))

    return _rows(row, (3,), torch.float64, tensor), float(start)


def _a_finite_element(tensor: torch.Tensor) -> torch.Tensor:
    for (piece,) in pieces(tensor):
        finite = is_finite(piece).flatten()
        if finite.any():
            return piece.flatten()[finite.to(torch.uint8).argmax()].double()
    return tensor.new_zeros((), dtype=torch.float64)


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


def add_along(
    numbers: torch.Tensor, dim: int, place: tuple[int | slice, ...], piece: torch.Tensor
) -> None:
    """Adds the sums of a piece by its index in one dimension of the whole, in place."""
    inside = dim - sum(isinstance(index, int) for index in place)  # its number in the piece
    others = [d for d in range(piece.dim()) if d != inside]
    numbers[place[dim] if dim < len(place) else slice(None)] += (
        piece.sum(others) if others else piece
    )


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


def _coordinates(place: int, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(at) for at in np.unravel_index(place, shape))


def all_finite(outputs: list[torch.Tensor]) -> bool:
    """Whether every element of every tensor is finite."""
    return not any(
        sum(counts_of(lambda piece: ~is_finite(piece), t)) for t in outputs if is_rounded(t)
    )


def same_infinities(output: torch.Tensor, exact: torch.Tensor | None) -> bool:
    """Whether an output has numbers, no NaN, and infinities where and as `exact` has them."""
    if not is_rounded(output) or not output.numel():
        return True
    if exact is None:
        return all_finite([output])

    def unlike(piece: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        piece = widened(piece)
        return ~(torch.isfinite(piece) & torch.isfinite(other)) & (piece != other)

    return any(counts_of(is_finite, output)) and not any(
        counts_of(unlike, real(output), real(exact))
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


ROUNDING = 1e-2
"""Root mean square, relative to the output's, by which two runs may differ through rounding alone.

An ulp of bfloat16 is 4e-3.
"""


def differ(these: list[torch.Tensor], those: list[torch.Tensor]) -> bool:
    """Whether any tensor differs from its counterpart; NaN equals NaN."""
    pairs = zip(these, those, strict=True)
    return any(
        one.shape != other.shape or any(counts_of(unlike, one, other)) for one, other in pairs
    )


def rounded_otherwise(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two floating-point tensors differ by no more than rounding."""
    if one.shape != other.shape or not one.numel() or not one.is_floating_point():
        return not differ([one], [other])
    off = size_of(lambda a, b: widened(a) - widened(b), one, other).rms
    return off <= ROUNDING * size_of(widened, one).rms  # False for NaN


def unlike(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two tensors differ; NaN equals NaN."""
    one, other = widened(one), widened(other)
    return (one != other) & ~(one.isnan() & other.isnan())
