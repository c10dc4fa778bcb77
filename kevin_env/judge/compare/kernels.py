# pyright: reportArgumentType=false, reportCallIssue=false
"""Passes over a tensor on a GPU, in one kernel each; torch takes ten to forty passes for the same.

Tensors are contiguous and have one shape. Kernels are compiled once for all shapes, since that
takes longer than a pass. `values` and `distributions` compute the same on a CPU,
in pieces that fit a cache.
"""

import math
from collections.abc import Mapping

import torch
import triton
import triton.language as tl

from kevin_env.judge.compare.values import Size, widened

BLOCK = 1024
PROGRAMS = 2048
"""Most programs of a reduction, each of which returns one row."""


@triton.jit(do_not_specialize=["n", "rounding"])
def _difference(
    got, wanted, share, rows, n, rounding,
    WIDE: tl.constexpr, SHARED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    largest = tl.zeros((BLOCK,), WIDE)
    squares = tl.zeros((BLOCK,), tl.float64)
    lost = tl.zeros((BLOCK,), tl.int32)
    start = tl.program_id(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        right = tl.load(wanted + at, inside, 0.0).to(WIDE)
        off = tl.abs(tl.load(got + at, inside, 0.0).to(WIDE) - right)
        beyond = off - rounding * tl.abs(right)
        if SHARED:
            part = tl.load(share + at, inside, 1.0)
            off /= part
            beyond /= part
        finite = off < float("inf")  # false for NaN
        largest = tl.maximum(largest, tl.where(finite, beyond, 0.0))
        squares += tl.where(finite, off * off.to(tl.float64), 0.0)
        lost += tl.where(finite, 0, 1)
        start += tl.num_programs(0).to(tl.int64) * BLOCK
    row = rows + 3 * tl.program_id(0)
    tl.store(row, tl.max(largest, 0).to(tl.float64))
    tl.store(row + 1, tl.sum(squares, 0))
    tl.store(row + 2, tl.sum(lost, 0).to(tl.float64))


def difference(
    got: torch.Tensor,
    wanted: torch.Tensor,
    share: torch.Tensor | None,
    wide: torch.dtype,
    rounding: float,
) -> Size:
    """As `values.difference_of`."""
    got, wanted = widened(got), widened(wanted)
    rows = _rows(got, 3)
    kind, shared = _WIDE[wide], share is not None
    share = got if share is None else share
    _difference[(len(rows),)](got, wanted, share, rows, got.numel(), rounding, kind, shared, BLOCK)
    largest, squares, lost = torch.stack(
        (rows[:, 0].amax(), rows[:, 1].sum(), rows[:, 2].sum())
    ).tolist()
    if lost:
        return Size(math.nan, math.nan)
    return Size(largest, math.sqrt(squares / got.numel()))


@triton.jit(do_not_specialize=["n"])
def _spread(x, rows, n, BLOCK: tl.constexpr):
    count = tl.full((), 0.0, tl.float64)
    mean, squares = count, count
    start = tl.program_id(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, at < n, float("inf")).to(tl.float64)
        finite = tl.abs(value) < float("inf")
        some = tl.sum(finite.to(tl.int32), 0).to(tl.float64)
        # relative to one of the values, so that equal ones have no deviation at all
        one = tl.max(tl.where(finite, value, -float("inf")), 0)
        off = tl.where(finite, value - one, 0.0)
        middle = tl.sum(off, 0) / tl.maximum(some, 1.0)
        off = tl.where(finite, off - middle, 0.0)
        both = tl.maximum(count + some, 1.0)
        away = tl.where(some > 0, one + middle - mean, 0.0)
        squares += tl.sum(off * off, 0) + away * away * (count * some / both)
        mean += away * (some / both)
        count += some
        start += tl.num_programs(0).to(tl.int64) * BLOCK
    row = rows + 3 * tl.program_id(0)
    tl.store(row, count)
    tl.store(row + 1, mean)
    tl.store(row + 2, squares)


def spread_rows(tensor: torch.Tensor) -> torch.Tensor:
    """For each part: its finite elements, their mean, and the sum of squared deviations from it.

    The result is float64 of shape [parts, 3].
    """
    tensor = widened(tensor)
    rows = _rows(tensor, 3)
    _spread[(len(rows),)](tensor, rows, tensor.numel(), BLOCK)
    return rows


@triton.jit(do_not_specialize=["n"])
def _roots(values, out, numbers, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + at, at < n, 0.0).to(tl.float64)
    away = tl.abs(value - tl.load(numbers))
    counted = (away > tl.load(numbers + 1)) & (away < float("inf"))
    root = tl.sqrt(tl.sqrt(tl.sqrt(tl.where(counted, away, 0.0).to(tl.float32))))
    tl.store(out + at, root, at < n)


def eighth_roots(values: torch.Tensor, centre: float, least: float) -> torch.Tensor:
    """The eighth roots of the distances from `centre`, as float32.

    They are 0 where the distance is at most `least` or not finite.
    """
    values = widened(values)
    out = torch.empty_like(values, dtype=torch.float32)
    numbers = _on(values.device, centre, least)
    _roots[_grid(values)](values, out, numbers, values.numel(), BLOCK)
    return out


@triton.jit(do_not_specialize=["n", "inner_1", "size_1", "inner_2", "size_2", "inner_3", "size_3"])
def _share(
    values, out, numbers, first, second, third, n,
    inner_1, size_1, inner_2, size_2, inner_3, size_3,
    SLICED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    centre, spread, typical, least = (
        tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2), tl.load(numbers + 3)
    )  # fmt: skip
    low = tl.zeros((BLOCK,), tl.float64) + tl.maximum(typical, least)
    if SLICED > 0:
        low *= tl.load(first + (at // inner_1) % size_1)
    if SLICED > 1:
        low *= tl.load(second + (at // inner_2) % size_2)
    if SLICED > 2:
        low *= tl.load(third + (at // inner_3) % size_3)
    value = tl.load(values + at, at < n, 0.0).to(tl.float64)
    away = tl.abs(value - centre)
    away = tl.where(away < float("inf"), away, spread)
    part = tl.minimum(tl.maximum(away, tl.maximum(low, least)), spread) / spread
    tl.store(out + at, part.to(tl.float32), at < n)


def share(
    values: torch.Tensor, centre: float, spread: float, typical: float, least: float,
    ratios: Mapping[int, torch.Tensor],
) -> torch.Tensor:  # fmt: skip
    """As `share.share_of`, with at most `share.MOST_SLICED` ratios."""
    values = widened(values)
    out = torch.empty_like(values, dtype=torch.float32)
    numbers = _on(values.device, centre, spread, typical, least)
    tensors, places = list[torch.Tensor](), list[int]()
    for dim, ratio in ratios.items():
        tensors.append(ratio)
        places += [values.stride(dim), values.shape[dim]]
    tensors += [numbers] * (3 - len(tensors))
    places += [1] * (6 - len(places))
    _share[_grid(values)](
        values, out, numbers, *tensors, values.numel(), *places, len(ratios), BLOCK
    )
    return out


@triton.jit(do_not_specialize=["key", "kept", "n"])
def _uniform(own, out, key, kept, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(own + at, at < n, 0.0).to(tl.float32)
    bits = value.to(tl.int32, bitcast=True).to(tl.int64) + key
    bits *= -0x61C8864680B583EB
    bits = (bits ^ (bits >> 30)) * -0x40A7B892E31B1A47
    bits = (bits ^ (bits >> 27)) * -0x6B2FB644ECCEEE15
    bits = bits ^ (bits >> 31)
    drawn = (((bits >> 40) & 0x7FFFFF).to(tl.float32) + 0.5) * (2.0**-22) - 1.0
    dropped = (value == 0) | ((bits & 0xFFFF) >= kept)
    tl.store(out + at, tl.where(dropped, float("nan"), drawn), at < n)


def uniform(own: torch.Tensor, key: int, kept: float) -> torch.Tensor:
    """Float32 numbers between -1 and 1, a random function of each value and of `key`.

    They are NaN where a value is 0, and elsewhere for all but a share `kept` of the values.
    """
    out = torch.empty_like(own, dtype=torch.float32)
    bits = math.ceil(kept * 0x10000)
    _uniform[_grid(own)](own, out, key % (1 << 62), bits, own.numel(), BLOCK)
    return out


@triton.jit(do_not_specialize=["n"])
def _placed(
    drawn, out, n, distance, width, shift, low, high,
    CLUSTERED: tl.constexpr, BELOW: tl.constexpr, RANGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(drawn + at, at < n, 0.0)
    dropped = value != value
    if CLUSTERED:
        centre = tl.floor(value + 0.5)
        value = (value - centre) * width
        if BELOW:
            centre = -(tl.abs(centre) + 1)
            value -= 2 * width
        value += centre * distance
    value += shift
    if RANGE == 3:
        value = low + (high - low) / 2 * (1 + value / (1 + tl.abs(value)))
    elif RANGE == 1:
        value = tl.maximum(tl.abs(value), low)
    elif RANGE == 2:
        value = tl.minimum(-tl.abs(value), high)
    tl.store(out + at, tl.where(dropped, 0.0, value).to(out.dtype.element_ty), at < n)


def placed(
    drawn: torch.Tensor, dtype: torch.dtype, clusters: tuple[float, float] | None, below: bool,
    shift: float, bounds: tuple[float, float],
) -> torch.Tensor:  # fmt: skip
    """Float32 numbers as values of an input; 0 for NaN.

    Args:
        drawn: The numbers, in units of the distance of clusters if there are any.
        dtype: Of the result.
        clusters: Distance and width of the clusters that the values lie in.
        below: Whether the clusters are below 0.
        shift: Is added.
        bounds: The range that the result is mapped into, as by `distributions.within`.
    """
    out = torch.empty_like(drawn, dtype=dtype)
    (distance, width), (low, high) = clusters or (0.0, 0.0), bounds
    finite = math.isfinite(low), math.isfinite(high)
    kind = 3 if all(finite) else 1 if low >= 0 else 2 if high <= 0 else 0
    low, high = (bound if math.isfinite(bound) else 0.0 for bound in bounds)
    _placed[_grid(drawn)](
        drawn, out, drawn.numel(), distance, width, shift, low, high,
        clusters is not None, below, kind, BLOCK,
    )  # fmt: skip
    return out


def prepare(device: torch.device) -> None:
    """Compiles what most outputs need on a GPU; Triton keeps it on disk.

    A kernel that is compiled when it is first needed takes up to a second in the lane.
    """
    torch.cuda.set_device(device)
    f32, f64, many = torch.float32, torch.float64, 1 << 20
    for dtype in (f32, torch.float16, torch.bfloat16):
        for wanted, wide in ((dtype, tl.float32), (f64, tl.float64)):
            for share in (None, f32):
                parts = (dtype, wanted, share or dtype, f64)
                _difference.warmup(*parts, many, 0.5, wide, share is not None, BLOCK, grid=(1,))
    for dtype in (f32, f64, torch.float16, torch.bfloat16):
        _spread.warmup(dtype, f64, many, BLOCK, grid=(1,))
        _roots.warmup(dtype, f32, f64, many, BLOCK, grid=(1,))


def _grid(tensor: torch.Tensor) -> tuple[int]:
    return (-(-tensor.numel() // BLOCK),)


def _rows(tensor: torch.Tensor, width: int) -> torch.Tensor:
    """One row for each program of a reduction."""
    programs = min(PROGRAMS, -(-tensor.numel() // BLOCK))
    return torch.empty((programs, width), dtype=torch.float64, device=tensor.device)


def _on(device: torch.device, *numbers: float) -> torch.Tensor:
    """Numbers as float64: kernels take those that are passed by value as float32."""
    return torch.tensor(numbers, dtype=torch.float64).to(device)


_WIDE = {torch.float32: tl.float32, torch.float64: tl.float64}
