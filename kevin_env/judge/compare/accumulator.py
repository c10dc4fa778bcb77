"""What a single accumulator for each sum costs: a reference is run with the rounding errors that it
would have.

Adding up n terms one after the other rounds each of the n partial sums S_k. An error of rounding is
within half an ulp of S_k and, as a rule, unlike the others, so that together they have the root
mean square `ROUNDED` eps sqrt(sum S_k^2) (Higham and Mary, "A New Approach to Probabilistic
Rounding Error Analysis", 2019). Of terms with the sum S and the sum of squares T, in any order, sum
S_k^2 is about n (S^2 / 3 + T / 2). Where terms are alike, or lost in the partial sum, errors add
up; where most are zero, there are fewer. So a sample of the sums is really added up that way, and
the estimate is scaled to that. That much is added to, or taken away from, the result of every sum
in the reference, with random signs; what follows from it in the output is what a kernel may be off
by.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

ROUNDED = 0.21
"""Root mean square of a rounding error, as a share of eps times the number: over a binade an ulp is
0.72 eps of it on average, and the error uniform within half an ulp.
"""
LONGEST = 1 << 20
"""Terms that one accumulator adds up at most: longer sums are computed in parts."""
SAMPLE = 64
"""Sums that are really added up; with fewer than `FEW` they may be off by little by chance."""
FEW = 16
aten = torch.ops.aten
COMPOUND = (
    aten._softmax, aten._log_softmax, aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm,
    aten._native_batch_norm_legit, aten.cudnn_batch_norm, aten.mse_loss, aten.smooth_l1_loss, aten.huber_loss,
    aten.nll_loss_forward, aten.soft_margin_loss, aten._fused_rms_norm,
)  # fmt: skip
"""What hides a sum; torch's own decompositions take it apart."""
Rule = Callable[..., Any]


class OneAccumulator(TorchDispatchMode):
    """Runs torch's sums, matrix products and convolutions so."""

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
    """The root mean square of one rounding error, as a share of what is rounded: accumulators are
    float32 at least.
    """
    return ROUNDED * torch.finfo(torch.promote_types(result.dtype, torch.float32)).eps


def _moved(result: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
    """A result with errors of either sign."""
    return result + torch.where(torch.rand_like(errors) < 0.5, -errors, errors).to(result.dtype)


def _modelled(count: float, total: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """The root of the sum of the squares of all partial sums."""
    return (min(count, LONGEST) * (total.square() / 3 + squares / 2)).sqrt()


def _scale(terms: torch.Tensor, rounded: float) -> float:
    """What the model has to be multiplied by, from the terms of some sums, a row of float32 for
    each.
    """
    terms = terms[:, :LONGEST].float().cpu()
    exact = terms.double()
    off = torch.from_numpy(np.add.accumulate(terms.numpy(), axis=1)[:, -1]) - exact.sum(1)
    modelled = rounded * _modelled(terms.shape[1], exact.sum(1), exact.square().sum(1))
    if not modelled.any() or not torch.isfinite(modelled.sum()):
        return 1.0
    scale = float(torch.linalg.vector_norm(off) / torch.linalg.vector_norm(modelled))
    return scale if len(terms) >= FEW else max(1.0, scale)


def _places(shape: Sequence[int], device: torch.device) -> tuple[torch.Tensor, ...]:
    """Indices of some elements of a tensor of this shape; of all where they are few."""
    count = math.prod(shape)
    chosen = (
        torch.randint(count, (SAMPLE,), device=device)
        if count > SAMPLE
        else torch.arange(count, device=device)
    )
    return torch.unravel_index(chosen, tuple(shape))


def _product(added: int) -> Rule:
    """Of a matrix product, whose factors come after so many arguments."""

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
    """What is added up over some dimensions, a row for each sum of a sample."""
    given = range(x.dim()) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    axes = [axis % x.dim() for axis in given]
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
    """Of a sum of squares, of what is left of the mean or of the elements, or of a power of one."""
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
    """Of a variance, or a standard deviation, and a mean."""
    spread = _var(1)(lambda *given, **named: func(*given, **named)[0], x, dim, *args, **kwargs)
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
