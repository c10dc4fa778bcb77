"""Whether an output is the reference's. Works on tensors of the judge's own; nothing here touches a
candidate.

Integers, bools and bytes are exact. A floating-point element may be off by a budget: a stated
multiple of the reference's own largest error against float64 arithmetic, never less than some ulps
of the output's scale, plus the rounding of the element itself. The scale is the spread (standard
deviation) of the expected output, so that a large common offset does not hide an error; for outputs
of few elements it is their magnitude.

A plain float32 sum is sometimes far off in one element of millions, a wrong constant a little in
all of them. So where there are many elements, what they are off by together (root mean square) has
a tighter budget.

Where that is not enough for one accumulator a sum (a sum of very many terms, or of terms of one
sign), the budget is a multiple of what the reference would be off by with such accumulators (see
`accumulator`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from kevin_env.judge.compare.chunked import Size, Values, counts_of, size_of, spread_of
from kevin_env.judge.compare.mismatch import Mismatch, of_elements, of_form, of_the_whole
from kevin_env.judge.compare.pattern import pattern_of
from kevin_env.outcome import Pattern

REFERENCE_MULTIPLE = {torch.float64: 64.0, torch.float32: 64.0}
"""How many times the reference's own error is allowed, by dtype; `LOW_MULTIPLE` for fp16, bf16 and
fp8.
"""
LOW_MULTIPLE = 4.0
SCALE_ULPS = {torch.float64: 128.0, torch.float32: 128.0}
"""How many ulps of the scale are allowed at least; `LOW_ULPS` for fp16, bf16 and fp8."""
LOW_ULPS = 2.0
RMS_MULTIPLE = 48.0
"""As `REFERENCE_MULTIPLE`, of the root mean square. Measured of running float32 sums: 8 times the
reference's own over 1024 elements, 26 over 8192, 50 over 32768; of a LayerNorm without its epsilon
of 1e-5: 85 and more.
"""
RMS_ULPS = 32.0
"""As `SCALE_ULPS`, of the root mean square."""
LOW_RMS_MULTIPLE, LOW_RMS_ULPS = 4.0, 1.0
"""The same of 16-bit and 8-bit floats. Measured of products in bf16: 1.9 times the reference's own
with partial sums in bf16, 6.4 with operands in int8, which no single element shows.
"""
MANY = 1024
"""Elements from which on a root mean square says something."""
TF32_MULTIPLE = 4.0
"""As `REFERENCE_MULTIPLE`, where float32 may be TF32: the reference's own error is one of TF32
already.
"""
TF32_SHARE = 2.0**-9
"""Share of the scale that is allowed at least where float32 may be TF32. Rounding both operands of
a dot product to ten bits moves it by 2.9e-4 of its scale (root mean square), by six times that in
the worst of many elements; rounding them to bf16 by eight times as much.
"""
PLAIN_MULTIPLE = 6.0
"""How many times the error of plain accumulators is allowed. That is one of a standard deviation in
each sum; of millions of normal errors the largest is 5.5.
"""
PLAIN_RMS_MULTIPLE = 4.0
"""As `PLAIN_MULTIPLE`, of the root mean square: elements may have an error in common."""
PLAIN_SHARE = 0.99
"""The share of elements whose error counts: a few may be wholly others, where a choice such as a
top-k changed.
"""
PLAIN_SAMPLE = 1 << 16
PLAIN_MOST = 1024.0
"""Who is off by more times what is allowed is not asked about: a million terms of one sign take 30
times that.
"""
FEW = 16


@dataclass(frozen=True)
class Tolerance:
    """What an output may be off by.

    Attributes:
        worst: Each element, without its own rounding.
        rms: The root mean square of all; infinite where elements are few or may be TF32.
        finite: Whether all of them are finite numbers, in the reference's output and the oracle's.
    """

    worst: float
    rms: float
    finite: bool


Plain = Callable[[], torch.Tensor | None]
EXACT = Tolerance(0.0, math.inf, True)
"""Of what is no floating-point number, and of outputs without elements."""


def compare(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str,
    plain: Plain = lambda: None,
) -> Mismatch | None:  # fmt: skip
    """What is wrong with `got`, or None.

    Args:
        got: The submission's output.
        reference: The reference's output in its own precision.
        oracle: The reference's output from float64 arithmetic, where it can be had.
        multiplier: The problem's TOLERANCE, which scales the budget.
        precision: `ieee` or `tf32`.
        plain: Gives the reference's output with plain accumulators, where it can be had.
    """
    wrong = of_form(got, reference)
    return (
        wrong
        or find_wrong(
            got, reference, oracle, tolerance_of(reference, oracle, multiplier, precision), plain
        )[0]
    )


def find_wrong(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: Tolerance,
    plain: Plain,
) -> tuple[Mismatch | None, Tolerance]:
    """As `compare`, for a tensor of the reference's shape and dtype; with the tolerance that
    decided.

    `plain` is asked only where the tolerance given rejects, by little.
    """
    wrong = compare_within(got, reference, oracle, tolerance)
    if wrong is None or not _may_be_plain(wrong, tolerance):
        return wrong, tolerance
    tolerance = with_plain_sums(tolerance, reference, plain)
    return compare_within(got, reference, oracle, tolerance), tolerance


def compare_within(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: Tolerance
) -> Mismatch | None:
    """As `compare`, for a tensor of the reference's shape and dtype and with the tolerance found
    before.
    """
    if got.numel() == 0:
        return None
    if not (got.is_floating_point() or got.is_complex()):
        return of_elements(
            _differ, (got, reference), 0.0, "differ from the expected values, which are exact"
        )
    got, reference, exact = (
        _real(got),
        _real(reference),
        _real(reference if oracle is None else oracle),
    )
    if tolerance.finite and near(got, exact, tolerance.worst, tolerance.rms, in_float64=True):
        return None  # also without each element's own rounding
    return _compare_floats(got, reference, exact, tolerance)


def tolerance_of(
    reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str
) -> Tolerance:  # fmt: skip
    """What an output may be off by; the arguments are those of `compare`."""
    if reference.numel() == 0 or not (reference.is_floating_point() or reference.is_complex()):
        return EXACT
    reference, exact = _real(reference), _real(reference if oracle is None else oracle)
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


def _may_be_plain(wrong: Mismatch, tolerance: Tolerance) -> bool:
    return wrong.kind == "values" and (wrong.worst_error or 0.0) <= PLAIN_MOST * tolerance.worst


def with_plain_sums(tolerance: Tolerance, reference: torch.Tensor, plain: Plain) -> Tolerance:
    """A tolerance that admits one accumulator a sum as well.

    Args:
        tolerance: Without that.
        reference: The reference's output.
        plain: Gives what it is with plain accumulators, where it can be had.
    """
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
    """The absolute error that is allowed everywhere, without each element's own rounding.

    The arguments are those of `compare`.
    """
    return with_plain_sums(
        tolerance_of(reference, oracle, multiplier, precision), reference, plain
    ).worst


def allowance(dtype: torch.dtype, precision: str) -> tuple[float, float]:
    """How many times the reference's own error is allowed in a dtype, and at least which share of
    the scale.
    """
    if precision == "tf32" and dtype == torch.float32:
        return TF32_MULTIPLE, TF32_SHARE
    ulps = SCALE_ULPS.get(dtype, LOW_ULPS)
    return REFERENCE_MULTIPLE.get(dtype, LOW_MULTIPLE), ulps * torch.finfo(dtype).eps


def wrong_elements(
    value: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor, allowed: float, eps: float
) -> torch.Tensor:
    """Which elements are outside the tolerance, as a mask.

    Args:
        value: The submission's output, as float64.
        wanted: The reference's, as float64.
        exact: The oracle's, or again the reference's.
        allowed: The budget.
        eps: Of the output's own dtype.
    """
    # `err <= tol` so that NaN fails; an infinity or NaN of the reference must be met by the same
    right = (value - exact).abs() <= allowed + 2 * eps * exact.abs()
    same = (value == wanted) | (value.isnan() & wanted.isnan())
    return ~torch.where(torch.isfinite(wanted), right, same)


def find_pattern(
    wrong: Mismatch,
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: Tolerance,
) -> Pattern | None:
    """What the wrong elements have in common of which `compare_within` has told; None where there
    is nothing.
    """
    if not wrong.wrong:
        return None
    got, reference, exact = (
        _real(got),
        _real(reference),
        _real(reference if oracle is None else oracle),
    )
    if wrong.kind == "not_finite":
        mask = _lost
    elif got.is_floating_point():
        mask = _outside(tolerance.worst, got.dtype)
    else:
        mask = _differ
    return pattern_of(mask, (got, reference, exact), tolerance.worst)


def near(
    got: torch.Tensor, reference: torch.Tensor, worst: float, rms: float, in_float64: bool = False
) -> bool:
    """Whether `got` is finite and off from the reference by at most two distances.

    Args:
        got: The submission's output.
        reference: The reference's, of the same shape, both floating-point.
        worst: For each element.
        rms: For the root mean square of all.
        in_float64: Whether that is found in float64; else in the precision of `got`, float32 at
            least.
    """
    if got.numel() == 0:
        return True
    wide = torch.float64 if in_float64 or got.dtype == torch.float64 else torch.float32
    off = size_of(lambda a, b: a.to(wide) - b.to(wide), got, reference)
    return math.isfinite(off.largest) and off.largest <= worst and off.rms <= rms  # which no NaN is


def all_finite(outputs: list[torch.Tensor]) -> bool:
    """Whether every element of every tensor that could be something else is a finite number."""
    others = [t for t in outputs if t.is_floating_point() or t.is_complex()]
    return not any(sum(counts_of(lambda piece: ~_is_finite(piece), t)) for t in others)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, as float32 where it is fp8, which has few operators of its own."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


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
    found = of_elements(
        _outside(worst, got.dtype), tensors, worst, "exceed the tolerance", error=error.largest
    )
    if found is not None or tolerance.rms == math.inf or error.rms <= tolerance.rms:
        return found
    return of_the_whole(_error, tensors, error, tolerance.rms)


def _outside(worst: float, dtype: torch.dtype) -> Values:
    def wrong(value: torch.Tensor, wanted: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return wrong_elements(
            value.double(), wanted.double(), right.double(), worst, torch.finfo(dtype).eps
        )

    return wrong


def _rms_budget(reference: torch.Tensor, exact: torch.Tensor, own: float, scale: float) -> float:
    """Of many elements, whose reference is off by `own`, before the problem's TOLERANCE."""
    least = torch.finfo(reference.dtype).eps * scale
    if reference.dtype in REFERENCE_MULTIPLE:
        return max(RMS_MULTIPLE * own, RMS_ULPS * least)
    # of each element, where no oracle shows it
    rounding = (
        torch.finfo(reference.dtype).eps / 4 * size_of(_exact_where_finite, reference, exact).rms
    )
    return max(LOW_RMS_MULTIPLE * max(own, rounding), LOW_RMS_ULPS * least)


def _differ(
    got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor | None = None
) -> torch.Tensor:
    # a bool by its byte: torch takes every byte but 0 for true, also those that nobody wrote
    return (
        got != wanted
        if got.dtype != torch.bool
        else got.view(torch.uint8) != wanted.view(torch.uint8)
    )


def _off(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return wanted.double() - exact


def _finite_off(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return _finite_part(_off(wanted, exact))


def _off_where_finite(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(_is_finite(wanted), _off(wanted, exact), 0.0)


def _exact_where_finite(wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(_is_finite(wanted), exact.double(), 0.0)


def _finite_part(values: torch.Tensor) -> torch.Tensor:
    return values.double().nan_to_num(0.0, 0.0, 0.0)


def _is_finite(values: torch.Tensor) -> torch.Tensor:
    return torch.isfinite(widened(values))


def _lost(got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return _is_finite(wanted) & ~_is_finite(got)


def _error(got: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.where(_is_finite(wanted), (got.double() - exact.double()).abs(), 0.0)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
