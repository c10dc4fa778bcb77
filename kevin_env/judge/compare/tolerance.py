"""What an output may be off by.

Integers, bools and bytes must be equal. A floating-point element may be off by the largest of

- a multiple of the reference's own largest error against float64 arithmetic,
- a number of ulps of the output's scale,

plus the rounding of the element itself. The scale is the standard deviation of the expected
output, so that a large common offset does not hide an error; for outputs of few elements it is
their largest magnitude. Where an output spans orders of magnitude, an element has a share of that
(see `share`), and errors are divided by it.

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

from kevin_env.judge.compare.share import FEW, share_of
from kevin_env.judge.compare.values import (
    Mismatch,
    Size,
    Values,
    counts_of,
    difference_of,
    first_of,
    is_finite,
    is_rounded,
    of_elements,
    real,
    size_of,
    spread_of,
    unlike,
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
OWN_ULPS = 2.0
"""What each element may be off by beyond the tolerance, in ulps of itself."""
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

Errors that grow with the elements are largest in the largest few: of a softmax, the error of the
sum is a share of every element. So elements of each magnitude are looked at apart, too.
"""
PLAIN_MOST = 2.0**6
"""Multiple of the tolerance up to which errors of a few elements count; larger ones are choices."""
PLAIN_SAMPLE = 1 << 14
PLAIN_DRAWS = 4
"""Draws of errors. In one draw those of two numbers whose difference matters may cancel."""


@dataclass(frozen=True)
class Tolerance:
    """What an output may be off by.

    Attributes:
        worst: For each element, without its own rounding.
        rms: For the root mean square; infinite if elements are few or may be TF32.
        finite: Whether the reference's output and the oracle's are finite everywhere.
        scale: Of the output that it was found for, if its elements have shares of the tolerance.
    """

    worst: float
    rms: float
    finite: bool
    scale: float | None = None

    def at(self, scale: float, factor: float) -> "Tolerance":
        """A multiple of the tolerance, for an output of another scale."""
        factor *= scale / self.scale if self.scale else 1.0
        return replace(self, worst=factor * self.worst, rms=factor * self.rms)


Plain = Callable[[int], torch.Tensor | None]
Share = torch.Tensor | None
"""The share of the tolerance that each element has; None if all have all of it."""
_Share = torch.Tensor | float
"""The same for a piece."""
EXACT = Tolerance(0.0, math.inf, True)
"""For outputs that are not floating-point, or empty."""


def scale_of(exact: torch.Tensor) -> tuple[float, Share, int]:
    """The scale of a real output, the shares of its elements, and how many are finite."""
    count, mean, spread = spread_of(exact)
    if not spread or count < FEW:
        return size_of(finite_part, exact).largest, None, count
    return spread, share_of(exact, mean, spread), count


def tolerance_of(
    reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str
) -> tuple[Tolerance, Share]:  # fmt: skip
    """What an output may be off by, and the shares of its elements.

    Args:
        reference: The reference's output in its own precision.
        oracle: The same in float64 arithmetic, if available.
        multiplier: The problem's TOLERANCE.
        precision: `ieee` or `tf32`.
    """
    if reference.numel() == 0 or not is_rounded(reference):
        return EXACT, None
    reference, exact = real(reference), real(reference if oracle is None else oracle)
    scale, share, count = scale_of(exact)
    tensors = _with(share, reference, exact)
    own = Size(0.0, 0.0) if oracle is None else size_of(_off, *tensors)
    finite = count == exact.numel() and math.isfinite(own.rms)
    if oracle is not None and not finite:
        own = Size(size_of(_finite_off, *tensors).largest, size_of(_off_where_finite, *tensors).rms)
    multiple, least = allowance(reference.dtype, precision)
    worst = multiplier * max(multiple * own.largest if scale else 0.0, least * scale)
    rms = math.inf
    if reference.numel() >= MANY and (precision == "ieee" or reference.dtype != torch.float32):
        rms = multiplier * _rms_budget(tensors, own.rms, scale)
    return Tolerance(worst, rms, finite, None if share is None else scale), share


def with_plain_sums(
    tolerance: Tolerance, reference: torch.Tensor, plain: Plain, share: Share = None
) -> Tolerance:
    """A tolerance that also admits the errors of `plain`, which has one accumulator per sum."""
    if reference.dtype not in REFERENCE_MULTIPLE:
        return tolerance
    places, evenly = _sampled(reference.flatten())
    wanted = reference.flatten()[places].double()
    squares = torch.zeros_like(wanted)
    for draw in range(PLAIN_DRAWS):
        drawn = _at(places, plain(draw))
        if drawn is None:
            return tolerance
        squares += (drawn - wanted).square()
    off = (squares / PLAIN_DRAWS).sqrt()
    if share is not None:
        off /= share.flatten()[places]
    known = off[:evenly][torch.isfinite(off[:evenly])]
    if not known.numel():
        return tolerance
    most = known.quantile(PLAIN_SHARE)
    few = (off < PLAIN_MOST * tolerance.worst) & (wanted != 0)
    magnitudes, off = torch.frexp(wanted[few]).exponent, off[few]
    for each in magnitudes.unique():
        most = torch.maximum(most, off[magnitudes == each].quantile(PLAIN_SHARE))
    rms = PLAIN_RMS_MULTIPLE * float(known.clamp(max=most).square().mean().sqrt())
    worst = PLAIN_MULTIPLE * float(most)
    return replace(tolerance, worst=max(tolerance.worst, worst), rms=max(tolerance.rms, rms))


def _sampled(values: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Places of evenly spaced elements, then of extremes between them; how many the former are."""
    step = max(1, len(values) // PLAIN_SAMPLE)
    places = torch.arange(0, len(values), step, device=values.device)
    starts = places[: len(values) // step]
    pieces = values[: step * len(starts)].view(-1, step)
    extremes = [starts + pieces.argmax(1), starts + pieces.argmin(1)] if step > 1 else []
    return torch.cat([places, *extremes]), len(places)


def _at(places: torch.Tensor, tensor: torch.Tensor | None) -> torch.Tensor | None:
    """Some elements of a tensor; it is not kept, so that only one is held at a time."""
    return None if tensor is None else tensor.flatten()[places]


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


def _rms_budget(tensors: tuple[torch.Tensor, ...], own: float, scale: float) -> float:
    """For many elements, whose reference is off by `own`, without the problem's TOLERANCE."""
    dtype = tensors[0].dtype
    eps = torch.finfo(dtype).eps
    if dtype not in REFERENCE_MULTIPLE:  # each element's rounding, which no oracle shows
        own = max(own, eps / 4 * size_of(_exact_where_finite, *tensors).rms)
    multiple, ulps = rms_allowance(dtype)
    return max(multiple * own, ulps * eps * scale)


def _with(share: Share, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tensors if share is None else (*tensors, share)


def _off(wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0) -> torch.Tensor:
    return (wanted.double() - exact) / share


def _finite_off(wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0) -> torch.Tensor:
    return finite_part(_off(wanted, exact, share))


def _off_where_finite(
    wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0
) -> torch.Tensor:
    return torch.where(is_finite(wanted), _off(wanted, exact, share), 0.0)


def _exact_where_finite(
    wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0
) -> torch.Tensor:
    return torch.where(is_finite(wanted), exact.double() / share, 0.0)


def finite_part(values: torch.Tensor) -> torch.Tensor:
    """The values in float64, with zeros in place of infinities and NaN."""
    return values.double().nan_to_num(0.0, 0.0, 0.0)


MISSED = "differ from an expected infinity or NaN"


def compare_within(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: Tolerance,
    share: Share = None,
) -> Mismatch | None:
    """What is wrong with a tensor of the right shape and dtype, or None.

    Args:
        got: The submission's output.
        reference: The reference's output in its own precision.
        oracle: The reference's output in float64 arithmetic, if available.
        tolerance: What it may be off by.
        share: The share of that that each element has.
    """
    if got.numel() == 0:
        return None
    if not is_rounded(got):
        return of_elements(
            _differ, (got, reference), 0.0, "differ from the expected values, which are exact"
        )
    got, reference, exact, *_ = tensors = parts(got, reference, oracle, share)
    if tolerance.finite and near(got, exact, tolerance, share, OWN_ULPS, in_float64=True):
        return None
    worst = tolerance.worst
    lost = of_elements(
        _lost, tensors, worst, "are not finite where the expected values are", "not_finite"
    )
    if lost is not None:
        return lost
    error = size_of(_error, *tensors)
    part = 1.0 if share is None else _share_at(error.largest, tensors)
    mismatch = of_elements(
        outside(worst, got.dtype), tensors, part * worst, "exceed the tolerance",
        error=part * error.largest,
    )  # fmt: skip
    if mismatch is not None:
        return of_elements(_missed, tensors, worst, MISSED) or mismatch
    if tolerance.rms == math.inf or error.rms <= tolerance.rms:
        return None
    scaled = "" if share is None else ", each divided by the element's share of the tolerance"
    text = (
        f"the root mean square of the errors is {error.rms:.3g}{scaled}, allowed "
        f"{tolerance.rms:.3g}; no single element exceeds its tolerance"
    )
    large = of_elements(lambda *piece: _error(*piece) >= error.largest / 2, tensors, 0.0, "")
    shown = large.differences if large else ()
    return Mismatch("values", text, None, got.numel(), part * error.largest, None, shown)


def _share_at(error: float, tensors: tuple[torch.Tensor, ...]) -> float:
    """The share of an element that has this error, which is the largest."""
    is_worst = lambda *piece: _error(*piece) >= error  # noqa: E731
    (place,) = first_of(is_worst, counts_of(is_worst, *tensors), 1, *tensors)
    return float(tensors[3][place])


def parts(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, share: Share = None
) -> tuple[torch.Tensor, ...]:
    """An output, the reference's and the oracle's, or again the reference's, as real tensors.

    The shares follow if there are any.
    """
    return _with(share, real(got), real(reference), real(reference if oracle is None else oracle))


def mask_of(wrong: Mismatch, tolerance: Tolerance, dtype: torch.dtype) -> Values:
    """Computes a mask of the elements that `compare_within` found wrong from its `parts`."""
    return _lost if wrong.kind == "not_finite" else outside(tolerance.worst, dtype)


def outside(allowed: float, dtype: torch.dtype) -> Values:
    """Computes a mask of the wrong elements from an output's `parts`.

    Args:
        allowed: The budget.
        dtype: Of the output.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _differ
    eps = torch.finfo(dtype).eps

    def wrong(
        value: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0
    ) -> torch.Tensor:
        value, wanted, exact = value.double(), wanted.double(), exact.double()
        # `<=` is false for NaN; an infinity or NaN of the reference requires the same value
        right = (value - exact).abs() <= allowed * share + OWN_ULPS * eps * exact.abs()
        same = (value == wanted) | (value.isnan() & wanted.isnan())
        return ~torch.where(torch.isfinite(wanted), right, same)

    return wrong


def near(
    got: torch.Tensor,
    wanted: torch.Tensor,
    tolerance: Tolerance,
    share: Share = None,
    ulps: float = 0.0,
    in_float64: bool = False,
) -> bool:
    """Whether `got` is finite and within a tolerance of what is wanted.

    Args:
        got: The submission's output.
        wanted: What is expected, of the same shape, both floating-point.
        tolerance: The tolerance.
        share: The share of it that each element has.
        ulps: What each element may be off by beyond that, in ulps of it.
        in_float64: Whether to compute in float64; otherwise in the precision of `got`, but at least
            float32.
    """
    if got.numel() == 0:
        return True
    wide = torch.float64 if in_float64 or got.dtype == torch.float64 else torch.float32
    rounding = ulps * torch.finfo(got.dtype).eps
    off = difference_of(*_with(share, got, wanted), wide=wide, rounding=rounding)
    return (
        math.isfinite(off.largest) and off.largest <= tolerance.worst and off.rms <= tolerance.rms
    )


def _differ(got: torch.Tensor, wanted: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    if got.dtype == torch.bool:  # torch takes every byte except 0 as true, even unwritten memory
        got, wanted = got.view(torch.uint8), wanted.view(torch.uint8)
    return got != wanted


def _lost(got: torch.Tensor, wanted: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return is_finite(wanted) & ~is_finite(got)


def _missed(got: torch.Tensor, wanted: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return ~is_finite(wanted) & unlike(got, wanted)


def _error(
    got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor, share: _Share = 1.0
) -> torch.Tensor:
    return torch.where(is_finite(wanted), (got.double() - exact.double()).abs() / share, 0.0)
