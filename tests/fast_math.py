"""The errors that CUDA documents for `--use_fast_math`, emulated on a reference.

Bounds are those of the CUDA programming guide ("Mathematical Functions", "Intrinsic Functions") for
`__expf`, `__logf`, `__sinf`, `__cosf`, approximate division, square root and reciprocal square root,
and of the PTX manual for `tanh.approx`. Every call of one of these functions in a reference, also inside softmax,
norms and activations, gets an error within its bound.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

EPS = 2.0**-23
TINY = torch.finfo(torch.float32).tiny
aten = torch.ops.aten
COMPOUND = (
    aten._softmax, aten._log_softmax, aten.native_layer_norm, aten.native_group_norm,
    aten.native_batch_norm, aten._native_batch_norm_legit, aten.silu, aten.softplus, aten.mish,
    aten.elu, aten.log_sigmoid_forward, aten.logsumexp, aten._fused_rms_norm, aten.logit,
    aten.binary_cross_entropy, aten.soft_margin_loss, aten.logaddexp,
)  # fmt: skip
Errors = Callable[[torch.Tensor], torch.Tensor]
"""Numbers of a tensor's shape within -1 and 1: the share of the bound that each call is off by."""


def uniform(like: torch.Tensor) -> torch.Tensor:
    """Independent errors, uniform within the bound."""
    return torch.rand(like.shape, dtype=torch.float32) * 2 - 1


def upward(like: torch.Tensor) -> torch.Tensor:
    """Errors of one sign, which no sum averages out: half of the bound."""
    return torch.full(like.shape, 0.5)


class FastMath(TorchDispatchMode):
    """Runs torch's float32 functions with the errors of fast math.

    Args:
        errors: How large the errors are within their bounds.
        coarse: Whether `tanh`, `sin` and `cos` become `tanh.approx`, `sin.approx` and `cos.approx`,
            which are too coarse.
    """

    def __init__(self, errors: Errors = uniform, coarse: bool = False) -> None:
        super().__init__()
        self._errors = errors
        self._coarse = coarse
        self._parts: dict[Any, Callable[..., Any]] = get_decompositions(COMPOUND)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self._parts:
            with self:
                return self._parts[func](*args, **kwargs)
        if func.overloadpacket is aten.sigmoid:
            return self._sigmoid(args[0])
        result = func(*args, **kwargs)
        if not isinstance(result, torch.Tensor) or result.dtype != torch.float32:
            return result
        bound = self._bound(func.overloadpacket, args, result)
        if bound is None:
            return result
        off = result + self._errors(result) * bound
        off = torch.where(off.abs() < TINY, 0.0, off)
        return result.copy_(off) if func._schema.is_mutable else off

    def _bound(self, packet: Any, args: Any, result: torch.Tensor) -> torch.Tensor | None:
        """The largest absolute error of each element."""
        ulp = result.abs() * EPS
        if packet in (aten.exp, aten.exp_):
            argument = torch.where(torch.isfinite(args[0]), args[0], 0.0)
            return torch.where(ulp.isfinite(), (2 + (1.173 * argument).abs().floor()) * ulp, 0.0)
        if packet in (aten.log, aten.log_):
            near = (args[0] >= 0.5) & (args[0] <= 2)
            return torch.where(torch.isfinite(ulp), torch.where(near, 2**-21.41, 3 * ulp), 0.0)
        if packet in (aten.div, aten.div_, aten.reciprocal, aten.rsqrt) and self._divides(args):
            return torch.where(torch.isfinite(ulp), 2 * ulp, 0.0)
        if packet in (aten.sqrt, aten.sqrt_):
            return torch.where(torch.isfinite(ulp), 3 * ulp, 0.0)
        if packet is aten.pow and not isinstance(args[0], torch.Tensor | int | float):
            return None
        if packet is aten.tanh and self._coarse:
            return result.abs() * 2.0**-11
        if packet in (aten.sin, aten.cos) and self._coarse:
            # documented within pi; beyond, the angle is scaled in float32 and loses its last bits
            return (args[0].abs() * EPS / 2).clamp(min=2**-21.41)
        return None

    @staticmethod
    def _divides(args: Any) -> bool:
        """Not by a constant power of two, which compilers multiply by."""
        other = args[1] if len(args) > 1 else None
        return not (isinstance(other, int | float) and other and math.log2(abs(other)).is_integer())

    def _sigmoid(self, x: torch.Tensor) -> torch.Tensor:
        with self:
            return (1 / (1 + torch.exp(-x.float()))).to(x.dtype)
