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
from dataclasses import replace

import torch

from kevin_env.judge.compare.values import (
    Size,
    Tolerance,
    is_finite,
    is_rounded,
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
