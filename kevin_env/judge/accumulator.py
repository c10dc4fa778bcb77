"""What a single accumulator for each sum costs: a reference is run with the rounding errors that it would have.

Adding up n terms one after the other rounds each of the n partial sums S_k. An error of rounding is within half an ulp
of S_k and unlike the others, so that together they have the root mean square `ROUNDED` eps sqrt(sum S_k^2) (Higham and
Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019). Of terms with the sum S and the sum of squares
T, in any order, sum S_k^2 is about n (S^2 / 3 + T / 2). That much is added to, or taken away from, the result of every
sum in the reference, with random signs; what follows from it in the output is what a kernel may be off by.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

ROUNDED = 0.21
"""Root mean square of a rounding error, as a share of eps times the number: over a binade an ulp is 0.72 eps of it on
average, and the error uniform within half an ulp."""
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


def _moved(result: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
    """A result with errors of either sign."""
    return result + torch.where(torch.rand_like(errors) < 0.5, -errors, errors).to(result.dtype)


def _summed(result: torch.Tensor, count: float, total: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """A sum of `count` terms, each element with the error of its accumulator."""
    if not result.is_floating_point() or count < 2:
        return result
    eps = ROUNDED * torch.finfo(torch.promote_types(result.dtype, torch.float32)).eps
    return _moved(result, eps * (count * (total.square() / 3 + squares / 2)).sqrt())


def _product(added: int) -> Rule:
    """Of a matrix product, whose factors come after so many arguments."""

    def rule(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        left, right = args[added], args[added + 1]
        result = func(*args, **kwargs)
        if not result.is_floating_point():
            return result
        squares = torch.matmul(left.float().square(), right.float().square())
        return _summed(result, left.shape[-1], result.float(), squares)

    return rule


def _convolution(func: Any, x: torch.Tensor, weight: torch.Tensor, bias: Any, *rest: Any) -> torch.Tensor:
    result = func(x, weight, bias, *rest)
    squares = func(x.square(), weight.square(), None, *rest)
    transposed, groups = rest[3], rest[5]
    return _summed(
        result, weight.numel() / (groups * weight.shape[1] if transposed else weight.shape[0]), result, squares
    )


def _sum(func: Any, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> torch.Tensor:
    result = func(x, dim, keepdim, **kwargs) if func is not aten.sum.default else func(x, **kwargs)
    if not result.is_floating_point() or not result.numel():
        return result
    return _summed(result, x.numel() / result.numel(), result, aten.sum(x.to(result.dtype).square(), dim, keepdim))


def _mean(func: Any, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> torch.Tensor:
    total = _sum(aten.sum.dim_IntList, x, dim, keepdim, **kwargs)
    return total / max(1.0, x.numel() / max(1, total.numel()))


def _cumsum(func: Any, x: torch.Tensor, dim: int, **kwargs: Any) -> torch.Tensor:
    result = func(x, dim, **kwargs)
    if not result.is_floating_point():
        return result
    eps = ROUNDED * torch.finfo(torch.promote_types(result.dtype, torch.float32)).eps
    return _moved(result, eps * result.double().square().cumsum(dim).sqrt())


def _positive(power: float) -> Rule:
    """Of a sum of positive terms, or of a power of one: its relative error does not depend on what they are."""

    def rule(func: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = func(x, *args, **kwargs)
        first = result[0] if isinstance(result, tuple) else result
        if not first.is_floating_point() or not first.numel():
            return result
        eps = ROUNDED * torch.finfo(torch.promote_types(first.dtype, torch.float32)).eps
        moved = _moved(first, first * (power * eps * math.sqrt(x.numel() / first.numel() / 3)))
        return (moved, *result[1:]) if isinstance(result, tuple) else moved

    return rule


_RULES: dict[Any, Rule] = {
    aten.mm: _product(0), aten.bmm: _product(0), aten.mv: _product(0), aten.dot: _product(0),
    aten.addmm: _product(1), aten.baddbmm: _product(1), aten.addmv: _product(1),
    aten.convolution: _convolution, aten.sum: _sum, aten.mean: _mean, aten.cumsum: _cumsum,
    aten.var: _positive(1), aten.var_mean: _positive(1), aten.std: _positive(0.5), aten.std_mean: _positive(0.5),
    aten.linalg_vector_norm: _positive(0.5), aten.norm: _positive(0.5),
}  # fmt: skip
