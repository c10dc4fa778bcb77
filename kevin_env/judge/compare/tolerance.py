"""What an output may be off by.

Integers, bools and bytes must be equal. A floating-point element may be off by the largest of

- a multiple of the reference's own largest error against float64 arithmetic,
- a number of ulps of the output's scale,

plus the rounding of the element itself. The scale is the standard deviation of the expected
output, so that a large common offset does not hide an error; for outputs of few elements it is
their largest magnitude.

A plain float32 sum is sometimes far off in one element of millions, a wrong constant a little in
all of them. Outputs of many elements therefore have a second, tighter budget for the root mean
square of all errors.

Where that rejects a kernel with a single accumulator per sum (very many terms, or terms of one
sign), the budget becomes a multiple of the error that the reference would have with such
accumulators (see `accumulator`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from kevin_env.judge.compare.values import (
    Mismatch,
    Size,
    Values,
    is_finite,
    is_rounded,
    of_elements,
    real,
    size_of,
    spread_of,
)

REFERENCE_MULTIPLE = {torch.float64: 64.0, torch.float32: 64.0}
"""Multiple of the reference's own error that is allowed, by dtype; `LOW_MULTIPLE` for fp16, bf16,
fp8.
"""
LOW_MULTIPLE = 4.0
SCALE_ULPS = {torch.float64: 128.0, torch.float32: 128.0}
"""Least error allowed, in ulps of the scale; `LOW_ULPS` for fp16, bf16 and fp8."""
LOW_ULPS = 2.0
RMS_MULTIPLE = 48.0
"""`REFERENCE_MULTIPLE` for the root mean square.

Measured for running float32 sums: 8 times the reference's own error over 1024 elements, 26 over
8192, 50 over 32768; for a LayerNorm without its epsilon of 1e-5: 85 and more.
"""
RMS_ULPS = 32.0
"""`SCALE_ULPS` for the root mean square."""
LOW_RMS_MULTIPLE, LOW_RMS_ULPS = 4.0, 1.0
"""The same for 16-bit and 8-bit floats.

Measured for products in bf16: 1.9 times the reference's own error with partial sums in bf16, 6.4
with operands in int8, which no single element shows.
"""
MANY = 1024
"""Number of elements from which the root mean square is compared."""
TF32_MULTIPLE = 4.0
"""`REFERENCE_MULTIPLE` if float32 may be TF32: the reference's own error is one of TF32 already."""
TF32_SHARE = 2.0**-9
"""Least error allowed if float32 may be TF32, as a share of the scale.

Rounding both operands of a dot product to ten bits moves it by 2.9e-4 of its scale (root mean
square), and by six times that in the worst of many elements; rounding them to bf16 by eight times
as much.
"""
PLAIN_MULTIPLE = 6.0
"""Multiple of the error of plain accumulators that is allowed.

That error is one standard deviation per sum; of millions of normal errors the largest is 5.5.
"""
PLAIN_RMS_MULTIPLE = 4.0
"""`PLAIN_MULTIPLE` for the root mean square: elements may have an error in common."""
PLAIN_SHARE = 0.99
"""Share of elements whose error counts: a few may be unrelated where a choice such as a top-k
changed.
"""
PLAIN_SAMPLE = 1 << 16
FEW = 16


@dataclass(frozen=True)
class Tolerance:
    """What an output may be off by.

    Attributes:
        worst: For each element, without its own rounding.
        rms: For the root mean square; infinite if elements are few or may be TF32.
        finite: Whether the reference's output and the oracle's are finite everywhere.
    """

    worst: float
    rms: float
    finite: bool


Plain = Callable[[], torch.Tensor | None]
EXACT = Tolerance(0.0, math.inf, True)
"""For outputs that are not floating-point, or empty."""


def tolerance_of(
    reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str
) -> Tolerance:  # fmt: skip
    """What an output may be off by; arguments as for `outputs.wrong`."""
    if reference.numel() == 0 or not is_rounded(reference):
        return EXACT
    reference, exact = real(reference), real(reference if oracle is None else oracle)
    count, spread = spread_of(exact)
    own = Size(0.0, 0.0) if oracle is None else size_of(_off, reference, exact)
    finite = count == exact.numel() and math.isfinite(own.rms)
    if oracle is not None and not finite:
        own = Size(
            size_of(_finite_off, reference, exact).largest,
            size_of(_off_where_finite, reference, exact).rms,
        )
    scale = spread if spread and count >= FEW else size_of(_finite_part, exact).largest
    multiple, share = allowance(reference.dtype, precision)
    worst = multiplier * max(multiple * own.largest if scale else 0.0, share * scale)
    if reference.numel() < MANY or (precision != "ieee" and reference.dtype == torch.float32):
        return Tolerance(worst, math.inf, finite)
    return Tolerance(worst, multiplier * _rms_budget(reference, exact, own.rms, scale), finite)


def with_plain_sums(tolerance: Tolerance, reference: torch.Tensor, plain: Plain) -> Tolerance:
    """A tolerance that also admits the error of `plain`, which has one accumulator per sum."""
    if reference.dtype not in REFERENCE_MULTIPLE or (other := plain()) is None:
        return tolerance
    step = max(1, reference.numel() // PLAIN_SAMPLE)
    off = (other.flatten()[::step].double() - reference.flatten()[::step].double()).abs()
    off = off[torch.isfinite(off)]
    if not off.numel():
        return tolerance
    most = off.quantile(PLAIN_SHARE)
    rms = PLAIN_RMS_MULTIPLE * float(off.clamp(max=most).square().mean().sqrt())
    worst = PLAIN_MULTIPLE * float(most)
    return replace(tolerance, worst=max(tolerance.worst, worst), rms=max(tolerance.rms, rms))


def budget(
    reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str,
    plain: Plain = lambda: None,
) -> float:  # fmt: skip
    """The absolute error allowed everywhere, without each element's own rounding.

    Arguments as for `outputs.wrong`.
    """
    return with_plain_sums(
        tolerance_of(reference, oracle, multiplier, precision), reference, plain
    ).worst


def allowance(dtype: torch.dtype, precision: str) -> tuple[float, float]:
    """For a dtype: the multiple of the reference's own error, and the least share of the scale."""
    if precision == "tf32" and dtype == torch.float32:
        return TF32_MULTIPLE, TF32_SHARE
    ulps = SCALE_ULPS.get(dtype, LOW_ULPS)
    return REFERENCE_MULTIPLE.get(dtype, LOW_MULTIPLE), ulps * torch.finfo(dtype).eps


def rms_allowance(dtype: torch.dtype) -> tuple[float, float]:
    """As `allowance` for the root mean square, but the least in ulps of the scale."""
    if dtype in REFERENCE_MULTIPLE:
        return RMS_MULTIPLE, RMS_ULPS
    return LOW_RMS_MULTIPLE, LOW_RMS_ULPS


def _rms_budget(reference: torch.Tensor, exact: torch.Tensor, own: float, scale: float) -> float:
    """For many elements, whose reference is off by `own`, without the problem's TOLERANCE."""
    eps = torch.finfo(reference.dtype).eps
    if reference.dtype not in REFERENCE_MULTIPLE:  # each element's rounding, which no oracle shows
        own = max(own, eps / 4 * size_of(_exact_where_finite, reference, exact).rms)
    multiple, ulps = rms_allowance(reference.dtype)
    return max(multiple * own, ulps * eps * scale)


def _off(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return wanted.double() - exact


def _finite_off(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return _finite_part(_off(wanted, exact))


def _off_where_finite(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(is_finite(wanted), _off(wanted, exact), 0.0)


def _exact_where_finite(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(is_finite(wanted), exact.double(), 0.0)


def _finite_part(values: torch.Tensor) -> torch.Tensor:
    return values.double().nan_to_num(0.0, 0.0, 0.0)


def compare_within(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: Tolerance
) -> Mismatch | None:
    """What is wrong with a tensor of the right shape and dtype, or None.

    Args:
        got: The submission's output.
        reference: The reference's output in its own precision.
        oracle: The reference's output in float64 arithmetic, if available.
        tolerance: What it may be off by.
    """
    if got.numel() == 0:
        return None
    if not is_rounded(got):
        return of_elements(
            _differ, (got, reference), 0.0, "differ from the expected values, which are exact"
        )
    got, reference, exact = tensors = parts(got, reference, oracle)
    if tolerance.finite and near(got, exact, tolerance.worst, tolerance.rms, in_float64=True):
        return None  # also without each element's own rounding
    worst = tolerance.worst
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
    text = (
        f"the root mean square error is {error.rms:.3g}, allowed {tolerance.rms:.3g}; "
        "no single element exceeds its tolerance"
    )
    large = of_elements(lambda *piece: _error(*piece) >= error.largest / 2, tensors, 0.0, "")
    shown = large.differences if large else ()
    return Mismatch("values", text, None, got.numel(), error.largest, None, shown)


def parts(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An output, the reference's and the oracle's, or again the reference's, as real tensors."""
    return real(got), real(reference), real(reference if oracle is None else oracle)


def mask_of(wrong: Mismatch, tolerance: Tolerance, dtype: torch.dtype) -> Values:
    """Computes a mask of the elements that `compare_within` found wrong from its `parts`."""
    return _lost if wrong.kind == "not_finite" else outside(tolerance.worst, dtype)


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
