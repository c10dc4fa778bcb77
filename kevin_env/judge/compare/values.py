"""Compares an output tensor with the reference's, and describes what is wrong with it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from kevin_env.judge.compare.chunked import (
    Size,
    Values,
    counts_of,
    first_of,
    is_finite,
    is_rounded,
    largest_of,
    real,
    size_of,
)
from kevin_env.judge.compare.pattern import pattern_of
from kevin_env.judge.compare.tolerance import (
    Plain,
    Tolerance,
    tolerance_of,
    with_plain_sums,
)
from kevin_env.outcome import Difference, Pattern

SHOWN = 5


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
        tensors: The submission's output first, the expected output last.
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


def of_the_whole(
    errors: Values, tensors: tuple[torch.Tensor, ...], error: Size, allowed: float
) -> Mismatch:
    """The worst elements of an output whose root mean square error is too large.

    Args:
        errors: Computes absolute errors from pieces of `tensors`.
        tensors: The submission's output first, the expected output last.
        error: The size of all errors.
        allowed: The root mean square that is allowed.
    """
    text = (
        f"the root mean square error is {error.rms:.3g}, allowed {allowed:.3g}; "
        "no single element exceeds its tolerance"
    )
    shown = _differences(largest_of(errors, SHOWN, *tensors), tensors)
    return Mismatch("values", text, None, tensors[0].numel(), error.largest, None, shown)


def _differences(
    places: Iterable[tuple[int, ...]], tensors: tuple[torch.Tensor, ...]
) -> tuple[Difference, ...]:
    got, expected = tensors[0], tensors[-1]
    return tuple(
        Difference(index=at, expected=_number(expected[at]), got=_number(got[at])) for at in places
    )


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype such as `float32`."""
    return str(dtype).removeprefix("torch.")


PLAIN_MOST = 1024.0
"""An error beyond this multiple of the tolerance is wrong without asking for plain accumulators.

A sum of a million terms of one sign is off by 30 times the tolerance.
"""


def compare(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    multiplier: float,
    precision: str,
    plain: Plain = lambda: None,
) -> Mismatch | None:
    """What is wrong with `got`, or None.

    Args:
        got: The submission's output.
        reference: The reference's output in its own precision.
        oracle: The reference's output in float64 arithmetic, if available.
        multiplier: The problem's TOLERANCE, which scales the budget.
        precision: `ieee` or `tf32`.
        plain: Computes the reference's output with one accumulator per sum, if possible.
    """
    wrong = of_form(list(got.shape), dtype_name(got.dtype), reference)
    if wrong is not None:
        return wrong
    tolerance = tolerance_of(reference, oracle, multiplier, precision)
    return find_wrong(got, reference, oracle, tolerance, plain)[0]


def find_wrong(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: Tolerance,
    plain: Plain,
) -> tuple[Mismatch | None, Tolerance]:
    """As `compare`, for a tensor of the right shape and dtype; also returns the deciding tolerance.

    `plain` is only called if the tolerance is exceeded by little.
    """
    wrong = compare_within(got, reference, oracle, tolerance)
    if wrong is None or not _may_be_plain(wrong, tolerance):
        return wrong, tolerance
    tolerance = with_plain_sums(tolerance, reference, plain)
    return compare_within(got, reference, oracle, tolerance), tolerance


def compare_within(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: Tolerance
) -> Mismatch | None:
    """As `compare`, for a tensor of the right shape and dtype and a known tolerance."""
    if got.numel() == 0:
        return None
    if not is_rounded(got):
        return of_elements(
            _differ, (got, reference), 0.0, "differ from the expected values, which are exact"
        )
    got, reference, exact = (
        real(got),
        real(reference),
        real(reference if oracle is None else oracle),
    )
    if tolerance.finite and near(got, exact, tolerance.worst, tolerance.rms, in_float64=True):
        return None  # also without each element's own rounding
    return _compare_floats(got, reference, exact, tolerance)


def _may_be_plain(wrong: Mismatch, tolerance: Tolerance) -> bool:
    return wrong.kind == "values" and (wrong.worst_error or 0.0) <= PLAIN_MOST * tolerance.worst


def outside(allowed: float, dtype: torch.dtype) -> Values:
    """Computes a mask of the wrong elements of an output, the reference's and the oracle's.

    Args:
        allowed: The budget.
        dtype: Of the output.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _differ
    eps = torch.finfo(dtype).eps

    def wrong(value: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        value, wanted, exact = value.double(), wanted.double(), exact.double()
        # `<=` is false for NaN; an infinity or NaN of the reference requires the same value
        right = (value - exact).abs() <= allowed + 2 * eps * exact.abs()
        same = (value == wanted) | (value.isnan() & wanted.isnan())
        return ~torch.where(torch.isfinite(wanted), right, same)

    return wrong


def find_pattern(
    wrong: Mismatch,
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: Tolerance,
) -> Pattern | None:
    """What the wrong elements that `compare_within` found have in common; None if nothing."""
    if not wrong.wrong:
        return None
    got, reference, exact = (
        real(got),
        real(reference),
        real(reference if oracle is None else oracle),
    )
    mask = _lost if wrong.kind == "not_finite" else outside(tolerance.worst, got.dtype)
    return pattern_of(mask, (got, reference, exact), tolerance.worst)


def near(
    got: torch.Tensor, reference: torch.Tensor, worst: float, rms: float, in_float64: bool = False
) -> bool:
    """Whether `got` is finite and within two distances of the reference.

    Args:
        got: The submission's output.
        reference: The reference's, of the same shape, both floating-point.
        worst: For each element.
        rms: For the root mean square of all.
        in_float64: Whether to compute in float64; otherwise in the precision of `got`, but at least
            float32.
    """
    if got.numel() == 0:
        return True
    wide = torch.float64 if in_float64 or got.dtype == torch.float64 else torch.float32
    off = size_of(lambda a, b: a.to(wide) - b.to(wide), got, reference)
    return math.isfinite(off.largest) and off.largest <= worst and off.rms <= rms


def _compare_floats(
    got: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, tolerance: Tolerance
) -> Mismatch | None:
    worst, tensors = tolerance.worst, (got, reference, exact)
    lost = of_elements(
        _lost, tensors, worst, "are not finite where the expected values are", "not_finite"
    )
    if lost is not None:
        return lost
    error = size_of(_error, *tensors)
    mismatch = of_elements(
        outside(worst, got.dtype), tensors, worst, "exceed the tolerance", error=error.largest
    )
    if mismatch is not None or tolerance.rms == math.inf or error.rms <= tolerance.rms:
        return mismatch
    return of_the_whole(_error, tensors, error, tolerance.rms)


def _differ(
    got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor | None = None
) -> torch.Tensor:
    if got.dtype == torch.bool:  # torch takes every byte except 0 as true, even unwritten memory
        got, wanted = got.view(torch.uint8), wanted.view(torch.uint8)
    return got != wanted


def _lost(got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return is_finite(wanted) & ~is_finite(got)


def _error(got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(is_finite(wanted), (got.double() - exact.double()).abs(), 0.0)
