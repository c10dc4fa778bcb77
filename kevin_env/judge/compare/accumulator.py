"""Runs a reference with the rounding errors of a single accumulator per sum.

Adding n terms one by one rounds each of the n partial sums S_k. A rounding error is within half an
ulp of S_k and usually independent of the others, so that together they have the root mean square
`ROUNDED` eps sqrt(sum S_k^2) (Higham and Mary, "A New Approach to Probabilistic Rounding Error
Analysis", 2019). For terms in any order with sum S and sum of squares T, sum S_k^2 is about
n (S^2 / 3 + T / 2).

If terms are alike, or lost in the partial sum, errors accumulate; if most are zero, there are
fewer. Therefore a sample of the sums is really computed with one accumulator, and the estimate is
scaled to match it. A normal error of that size is added to every sum of the reference; the
resulting change of the output is what a kernel may be off by. Errors may cancel, so several draws
are needed.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

ROUNDED = 0.21
"""Root mean square of a rounding error, as a share of eps times the number.

Over a binade an ulp is 0.72 eps of it on average, and the error is uniform within half an ulp.
"""
LONGEST = 1 << 20
"""Most terms per accumulator: longer sums are computed in parts."""
SAMPLE = 64
"""Sums that are really computed; with fewer than `FEW` they may be accurate by chance."""
FEW = 16
FURTHEST = 2.0
"""How far the furthest sum of a sample may be off by chance, in root mean squares of its error.

If the terms of one sum in many are alike, that sum is off by far more, and dividing by their
deviation exposes it. It then sets the scale for all.
"""
aten = torch.ops.aten
COMPOUND = (
    aten._softmax, aten._log_softmax, aten.native_layer_norm, aten.native_group_norm,
    aten.native_batch_norm, aten._native_batch_norm_legit, aten.cudnn_batch_norm, aten.mse_loss,
    aten.smooth_l1_loss, aten.huber_loss, aten.nll_loss_forward, aten.soft_margin_loss,
    aten._fused_rms_norm,
)  # fmt: skip
"""Operators that hide a sum; torch's decompositions expose it."""
Rule = Callable[..., Any]


class OneAccumulator(TorchDispatchMode):
    """Runs torch's sums, matrix products and convolutions with one accumulator per sum."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[Any, Rule] = get_decompositions(COMPOUND)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = _RULES.get(func.overloadpacket)
        if rule is not None and "out" not in kwargs:
            return rule(func, *args, **kwargs)
        if func in self._parts:
            with self:
                return self._parts[func](*args, **kwargs)
        return func(*args, **kwargs)


def _rounded(result: torch.Tensor) -> float:
    """The root mean square of one rounding error, relative; accumulators are at least float32."""
    return ROUNDED * torch.finfo(torch.promote_types(result.dtype, torch.float32)).eps


def _moved(result: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
    """A result with normal errors."""
    return result + (errors * torch.randn_like(errors)).to(result.dtype)


def _modelled(count: float, total: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """The root of the sum of the squares of all partial sums."""
    return (min(count, LONGEST) * (total.square() / 3 + squares / 2)).sqrt()


def _scale(terms: torch.Tensor, rounded: float) -> float:
    """The factor to scale the model by, from the terms of some sums: one float32 row per sum."""
    terms = terms[:, :LONGEST].float().cpu()
    exact = terms.double()
    off = torch.from_numpy(np.add.accumulate(terms.numpy(), axis=1)[:, -1]) - exact.sum(1)
    modelled = rounded * _modelled(terms.shape[1], exact.sum(1), exact.square().sum(1))
    if not modelled.any() or not torch.isfinite(modelled.sum()):
        return 1.0
    scale = float(torch.linalg.vector_norm(off) / torch.linalg.vector_norm(modelled))
    furthest = float((off / modelled).abs().nan_to_num(0.0, 0.0).max())
    return max(scale, furthest / FURTHEST, 1.0 if len(terms) < FEW else 0.0)


def _places(shape: Sequence[int], device: torch.device) -> tuple[torch.Tensor, ...]:
    """Indices of a sample of elements of a tensor of this shape; of all if they are few."""
    count = math.prod(shape)
    chosen = (
        torch.randint(count, (SAMPLE,), device=device)
        if count > SAMPLE
        else torch.arange(count, device=device)
    )
    return torch.unravel_index(chosen, tuple(shape))


def _product(added: int) -> Rule:
    """The rule of a matrix product, whose factors come after `added` other arguments."""

    def rule(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        left, right = args[added], args[added + 1]
        result = func(*args, **kwargs)
        if not result.is_floating_point() or not result.numel() or left.shape[-1] < 2:
            return result
        squares = torch.matmul(left.float().square(), right.float().square())
        rows, columns = (
            left if left.dim() > 1 else left[None],
            right if right.dim() > 1 else right[:, None],
        )
        *batch, row, column = _places((*rows.shape[:-1], columns.shape[-1]), left.device)
        terms = rows[(*batch, row)].float() * columns.mT[(*batch, column)].float()
        errors = _modelled(left.shape[-1], result.float(), squares) * _rounded(result)
        return _moved(result, errors * _scale(terms, _rounded(result)))

    return rule


def _convolution(
    func: Any, x: torch.Tensor, weight: torch.Tensor, bias: Any, *rest: Any
) -> torch.Tensor:
    result = func(x, weight, bias, *rest)
    squares = func(x.square(), weight.square(), None, *rest)
    transposed, groups = rest[3], rest[5]
    outputs = groups * weight.shape[1] if transposed else weight.shape[0]
    return _moved(result, _modelled(weight.numel() / outputs, result, squares) * _rounded(result))


def _terms(x: torch.Tensor, dim: Any) -> torch.Tensor:
    """The terms of a sum over some dimensions, one row per sum of a sample."""
    dims = range(x.dim()) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    axes = [axis % x.dim() for axis in dims]
    kept = [axis for axis in range(x.dim()) if axis not in axes]
    sample = x.permute(*kept, *axes)[_places([x.shape[axis] for axis in kept], x.device)]
    return sample.reshape(-1, math.prod(x.shape[axis] for axis in axes)).float()


def _sum(
    func: Any, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> torch.Tensor:
    result = func(x, **kwargs) if func is aten.sum.default else func(x, dim, keepdim, **kwargs)
    if not result.is_floating_point() or not 0 < result.numel() < x.numel():
        return result
    squares = aten.sum(x.to(result.dtype).square(), dim, keepdim)
    errors = _modelled(x.numel() / result.numel(), result, squares) * _rounded(result)
    return _moved(result, errors * _scale(_terms(x, dim), _rounded(result)))


def _mean(
    func: Any, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> torch.Tensor:
    total = _sum(aten.sum.dim_IntList, x, dim, keepdim, **kwargs)
    return total / max(1.0, x.numel() / max(1, total.numel()))


def _cumsum(func: Any, x: torch.Tensor, dim: int, **kwargs: Any) -> torch.Tensor:
    result = func(x, dim, **kwargs)
    if not result.is_floating_point():
        return result
    return _moved(result, _rounded(result) * result.double().square().cumsum(dim).sqrt())


def _spread(
    func: Any, x: torch.Tensor, dim: Any, power: float, middle: bool, *args: Any, **kwargs: Any
) -> torch.Tensor:
    """The rule of a sum of squares, of deviations from the mean or not, or of a power of one."""
    result = func(x, *args, **kwargs)
    if not result.is_floating_point() or not 0 < result.numel() < x.numel():
        return result
    terms = _terms(x, dim)
    squares = (terms - terms.mean(-1, keepdim=True)).square() if middle else terms.square()
    share = power * _rounded(result) * math.sqrt(min(LONGEST, x.numel() / result.numel()) / 3)
    return _moved(result, result * (share * _scale(squares, _rounded(result))))


def _var(power: float) -> Rule:
    def rule(
        func: Any, x: torch.Tensor, dim: Any = None, *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        return _spread(func, x, dim, power, True, dim, *args, **kwargs)

    return rule


def _var_mean(
    func: Any, x: torch.Tensor, dim: Any = None, *args: Any, **kwargs: Any
) -> tuple[torch.Tensor, ...]:
    """The rule of a variance or standard deviation together with a mean."""
    spread = _var(1)(lambda *rest, **named: func(*rest, **named)[0], x, dim, *args, **kwargs)
    return spread, _mean(func, x, dim, spread.dim() == x.dim())


def _norm(
    func: Any, x: torch.Tensor, order: Any = 2, dim: Any = None, *args: Any, **kwargs: Any
) -> torch.Tensor:
    return _spread(func, x, dim, 0.5, False, order, dim, *args, **kwargs)


_RULES: dict[Any, Rule] = {
    aten.mm: _product(0), aten.bmm: _product(0), aten.mv: _product(0), aten.dot: _product(0),
    aten.addmm: _product(1), aten.baddbmm: _product(1), aten.addmv: _product(1),
    aten.convolution: _convolution, aten.sum: _sum, aten.mean: _mean, aten.cumsum: _cumsum,
    aten.var: _var(1), aten.std: _var(0.5), aten.var_mean: _var_mean, aten.std_mean: _var_mean,
    aten.linalg_vector_norm: _norm,
}  # fmt: skip
