"""Whether an output is the reference's. Works on tensors of the judge's own; nothing here touches a candidate.

Integers, bools and bytes are exact. A floating-point element may be off by a budget: a stated multiple of the
reference's own largest error against float64 arithmetic, never less than some ulps of the output's scale, plus the
rounding of the element itself. The scale is the spread (standard deviation) of the expected output, so that a large
common offset does not hide an error; for outputs of few elements it is their magnitude.

A plain float32 sum is sometimes far off in one element of millions, a wrong constant a little in all of them. So where
there are many elements, what they are off by together (root mean square) has a tighter budget.
"""

import math
from dataclasses import dataclass

import torch

from kevin_env.outcome import Difference

REFERENCE_MULTIPLE = {torch.float64: 64.0, torch.float32: 64.0}
"""How many times the reference's own error is allowed, by dtype; `LOW_MULTIPLE` for fp16, bf16 and fp8."""
LOW_MULTIPLE = 4.0
SCALE_ULPS = {torch.float64: 128.0, torch.float32: 128.0}
"""How many ulps of the scale are allowed at least; `LOW_ULPS` for fp16, bf16 and fp8."""
LOW_ULPS = 2.0
RMS_MULTIPLE = 48.0
"""As `REFERENCE_MULTIPLE`, of the root mean square. Measured of running float32 sums: 8 times the reference's own over
1024 elements, 26 over 8192, 50 over 32768; of a LayerNorm without its epsilon of 1e-5: 85 and more."""
RMS_ULPS = 32.0
"""As `SCALE_ULPS`, of the root mean square."""
LOW_RMS_MULTIPLE, LOW_RMS_ULPS = 4.0, 1.0
"""The same of 16-bit and 8-bit floats. Measured of products in bf16: 1.9 times the reference's own with partial sums in
bf16, 6.4 with operands in int8, which no single element shows."""
MANY = 1024
"""Elements from which on a root mean square says something."""
TF32_MULTIPLE = 4.0
"""As `REFERENCE_MULTIPLE`, where float32 may be TF32: the reference's own error is one of TF32 already."""
TF32_SHARE = 2.0**-9
"""Share of the scale that is allowed at least where float32 may be TF32. Rounding both operands of a dot product to
ten bits moves it by 2.9e-4 of its scale (root mean square), by six times that in the worst of many elements; rounding
them to bf16 by eight times as much."""
FEW = 16
SHOWN = 5


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with one output tensor: a kind of `Incorrect` and its facts."""

    kind: str
    message: str
    wrong: int | None = None
    total: int | None = None
    worst_error: float | None = None
    tolerance: float | None = None
    differences: tuple[Difference, ...] = ()


def compare(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str
) -> Mismatch | None:
    """What is wrong with `got`, or None.

    Args:
        got: The submission's output.
        reference: The reference's output in its own precision.
        oracle: The reference's output from float64 arithmetic, where it can be had.
        multiplier: The problem's TOLERANCE, which scales the budget.
        precision: `ieee` or `tf32`.
    """
    if got.shape != reference.shape:
        return Mismatch("shape", f"expected shape {_shape(reference)}, got {_shape(got)}")
    if got.dtype != reference.dtype:
        return Mismatch("dtype", f"expected {_dtype(reference)}, got {_dtype(got)}")
    if not (got.is_floating_point() or got.is_complex()):
        # a bool by its byte: torch takes every byte but 0 for true, also those that nobody wrote
        wrong = got != reference if got.dtype != torch.bool else got.view(torch.uint8) != reference.view(torch.uint8)
        return _report(wrong, got, reference, None, 0.0, "differ from the expected values, which are exact")
    if got.is_complex():
        parts = [torch.view_as_real(t.resolve_conj()) for t in (got, reference)]
        exact = None if oracle is None else torch.view_as_real(oracle)
        return compare(parts[0], parts[1], exact, multiplier, precision)
    return _compare_floats(got, reference, oracle, multiplier, precision)


def budget(reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str) -> float:
    """The absolute error that is allowed everywhere, without each element's own rounding.

    The arguments are those of `compare`.
    """
    scale = _scale((reference if oracle is None else oracle).double())
    multiple, share = allowance(reference.dtype, precision)
    own = 0.0
    if oracle is not None and scale:
        own = float((reference.double() - oracle).nan_to_num(0.0, 0.0, 0.0).abs().max())
    return multiplier * max(multiple * own, share * scale)


def rms_budget(reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str) -> float:
    """The root mean square of all errors that is allowed; infinite where elements are few or may be TF32.

    The arguments are those of `compare`.
    """
    if reference.numel() < MANY or (precision != "ieee" and reference.dtype == torch.float32):
        return math.inf
    wanted, eps = reference.double(), torch.finfo(reference.dtype).eps
    exact = wanted if oracle is None else oracle
    finite = torch.isfinite(wanted)
    own, least = _rms(torch.where(finite, wanted - exact, 0.0)), eps * _scale(exact)
    if reference.dtype in REFERENCE_MULTIPLE:
        return multiplier * max(RMS_MULTIPLE * own, RMS_ULPS * least)
    rounding = eps / 4 * _rms(torch.where(finite, exact, 0.0))  # of each element, where no oracle shows it
    return multiplier * max(LOW_RMS_MULTIPLE * max(own, rounding), LOW_RMS_ULPS * least)


def allowance(dtype: torch.dtype, precision: str) -> tuple[float, float]:
    """How many times the reference's own error is allowed in a dtype, and at least which share of the scale."""
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


def near(got: torch.Tensor, reference: torch.Tensor, worst: float, rms: float) -> bool:
    """Whether `got` is finite and off from the reference, in its own precision, by no more than two distances.

    Args:
        got: The submission's output.
        reference: The reference's, of the same shape and floating-point dtype.
        worst: For each element.
        rms: For the root mean square of all.
    """
    if got.numel() == 0:
        return True
    wide = torch.float64 if got.dtype == torch.float64 else torch.float32
    off = got.to(wide) - reference.to(wide)
    return float(torch.linalg.vector_norm(off, math.inf)) <= worst and _rms(off) <= rms  # which no NaN is


def all_finite(outputs: list[torch.Tensor]) -> bool:
    """Whether every element of every tensor that could be something else is a finite number."""
    return all(bool(torch.isfinite(widened(t)).all()) for t in outputs if t.is_floating_point() or t.is_complex())


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, as float32 where it is fp8, which has few operators of its own."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


def _compare_floats(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, multiplier: float, precision: str
) -> Mismatch | None:
    wanted = reference.double()  # fp8 has few operators of its own
    exact = wanted if oracle is None else oracle
    allowed = budget(reference, oracle, multiplier, precision)
    value = got.double()
    finite = torch.isfinite(wanted)
    lost = finite & ~torch.isfinite(value)
    if bool(lost.any()):
        return _report(lost, got, exact, None, allowed, "are not finite where the expected values are", "not_finite")
    error = torch.where(finite, (value - exact).abs(), 0.0)
    wrong = wrong_elements(value, wanted, exact, allowed, torch.finfo(got.dtype).eps)
    found = _report(wrong, got, exact, error, allowed, "are outside the tolerance")
    return found or _report_rms(got, exact, error, rms_budget(reference, oracle, multiplier, precision))


def _report_rms(got: torch.Tensor, exact: torch.Tensor, error: torch.Tensor, allowed: float) -> Mismatch | None:
    if allowed == math.inf or (typical := _rms(error)) <= allowed:
        return None
    text = f"the elements are off by {typical:.3g} on the whole (root mean square), where {allowed:.3g} is allowed"
    worst = error.flatten().topk(SHOWN).indices
    places = (tuple(map(int, torch.unravel_index(at, got.shape))) for at in worst)
    shown = tuple(Difference(index=at, expected=_number(exact[at]), got=_number(got[at])) for at in places)
    return Mismatch("values", text, None, got.numel(), float(error.max()), None, shown)


def _scale(values: torch.Tensor) -> float:
    """The spread of the finite ones; their magnitude where they are few or all the same, 0 where there are none."""
    finite = values[torch.isfinite(values)]
    if finite.numel() == 0:
        return 0.0
    spread = float(finite.std()) if finite.numel() >= FEW else 0.0
    return spread or float(finite.abs().max())


def _rms(values: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(values)) / math.sqrt(values.numel())


def _report(
    wrong: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, error: torch.Tensor | None, allowed: float,
    what: str, kind: str = "values",
) -> Mismatch | None:  # fmt: skip
    count, total = int(wrong.sum()), wrong.numel()
    if count == 0:
        return None
    first = wrong.nonzero()[:SHOWN].tolist()
    differences = tuple(
        Difference(index=tuple(i), expected=_number(exact[tuple(i)]), got=_number(got[tuple(i)])) for i in first
    )
    worst = None if error is None else float(error.max())
    return Mismatch(kind, f"{count} of {total} elements {what}", count, total, worst, allowed, differences)


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def _shape(tensor: torch.Tensor) -> str:
    return str(list(tensor.shape))


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
