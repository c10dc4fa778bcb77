"""A reference run in other arithmetic: every operator that torch dispatches may be replaced.

Operators that hide a sum or an exponential (softmax, norms, GELU) are taken apart first, by torch's
own decompositions, so that the replaced ones are met inside them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rounding import Rounding
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

from kevin_env.judge.compare import accumulator

aten = torch.ops.aten
COMPOUND = (*accumulator.COMPOUND, aten.gelu, aten.silu, aten.softplus, aten.sigmoid)
LEAST_SCAN = 1024
"""Elements of a prefix sum between two carries."""
MOST_TERMS = {"cpu": accumulator.LONGEST, "cuda": 1 << 15}
"""Terms that one accumulator adds up: all that verdicts allow for on a CPU, and on a GPU as many as
in a kernel with threads to spare.
"""
Rule = Callable[..., Any]
Rules = dict[Any, Rule]


class Replaced(TorchDispatchMode):
    """Runs operators by rules of ours.

    Args:
        rules: What runs in the place of an operator, by its packet; it gets the operator's
            arguments.
        results: Applied to the results of every other operator that computes float32.

    Attributes:
        touched: How often something was replaced.
    """

    def __init__(self, rules: Rules, results: Rounding | None = None) -> None:
        super().__init__()
        self.touched = 0
        self._rules = rules
        self._results = results
        self._parts = get_decompositions(COMPOUND) if rules else {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = self._rules.get(func._overloadpacket)
        if rule is not None:
            self.touched += 1
            return rule(*args, **kwargs)
        if func in self._parts:
            with self:
                return self._parts[func](*args, **kwargs)
        result = func(*args, **kwargs)
        if (
            self._results is None
            or func.is_view
            or func in _COPIES
            or getattr(result, "dtype", None) != torch.float32
        ):
            return result
        self.touched += 1
        return self._results(result)


_COPIES = {aten.clone.default, aten._to_copy.default, aten.copy_.default, aten._unsafe_view.default}


def rounded_operands(rounding: Rounding) -> Rules:
    """Matrix products and convolutions of operands in a narrower type, summed in their own."""

    def rule(of: Any) -> Rule:
        def run(*args: Any, **kwargs: Any) -> Any:
            offset = of in (
                aten.addmm,
                aten.baddbmm,
                aten.addmv,
            )  # the first argument is added, not multiplied
            return of(
                *(
                    _if_float(rounding, a) if i in (offset, offset + 1) else a
                    for i, a in enumerate(args)
                ),
                **kwargs,
            )

        return run

    return {
        of: rule(of) for of in (aten.mm, aten.bmm, aten.mv, aten.dot, aten.addmm, aten.convolution)
    }


def by_parts(split: Rounding) -> Rules:
    """Matrix products of operands split into a narrow part and the rest (3xTF32): honest."""

    def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        big_left, big_right = split(left), split(right)
        small_left, small_right = split(left - big_left), split(right - big_right)
        return big_left @ big_right + (big_left @ small_right + small_left @ big_right)

    return _products(product)


@dataclass(frozen=True)
class Order:
    """A way to sum.

    Attributes:
        add_up: Sums a tensor over its last axis.
        add: Adds a part of a matrix product to what there is so far.
        step: Depth of such a part.
        backwards: Whether these are taken from the end.
        type: What products and prefix sums are computed in.
    """

    add_up: Callable[[torch.Tensor], torch.Tensor]
    add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.add
    step: int = 1
    backwards: bool = False
    type: torch.dtype = torch.float32

    def product(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """A matrix product whose depth is summed so."""
        rows = right.to(self.type).split(self.step, 0 if right.dim() < 2 else -2)
        parts = list(zip(left.to(self.type).split(self.step, -1), rows, strict=True))
        found = None
        for a, b in reversed(parts) if self.backwards else parts:
            found = a @ b if found is None else self.add(found, a @ b)
        return left @ right if found is None else found.to(left.dtype)

    def convolution(
        self, x: torch.Tensor, weight: torch.Tensor, bias: Any, *rest: Any
    ) -> torch.Tensor:
        """A convolution whose products are summed one after the other; in blocks or narrower it is
        left as it is.
        """
        if self.step > 1 or self.type != torch.float32 or self.add is not torch.add:
            return aten.convolution(x, weight, bias, *rest)
        return convolved(x, weight, bias, *rest, backwards=self.backwards)

    def scan(self, x: torch.Tensor, dim: int, **kwargs: Any) -> torch.Tensor:
        """Prefix sums, with a carry from block to block."""
        if not x.is_floating_point():
            return aten.cumsum(x, dim, **kwargs)
        carry = torch.zeros_like(x.select(dim, 0), dtype=self.type)
        parts: list[torch.Tensor] = []
        for part in x.to(self.type).split(max(self.step, LEAST_SCAN), dim):
            inside = _prefix_sums(part, dim)
            parts.append(self.add(carry.unsqueeze(dim), inside))
            carry = parts[-1].select(dim, -1)
        return torch.cat(parts, dim).to(x.dtype)


def summed_by(order: Order) -> Rules:
    """Every sum in another order or in narrower arithmetic."""
    add_up = order.add_up

    def total(
        x: torch.Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
    ) -> torch.Tensor:
        if not x.is_floating_point():
            return (
                aten.sum(x, dim, keepdim, dtype=dtype)
                if dim is not None
                else aten.sum(x, dtype=dtype)
            )
        axes = _axes(x, dim)
        kept = [i for i in range(x.dim()) if i not in axes]
        flat = x.permute(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)
        found = add_up(flat) if flat.shape[-1] else flat.sum(-1)
        return (
            found.reshape([1 if i in axes else size for i, size in enumerate(x.shape)])
            if keepdim
            else found
        )

    def mean(
        x: torch.Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
    ) -> torch.Tensor:
        return total(x, dim, keepdim) / math.prod(x.shape[i] for i in _axes(x, dim))

    def var_mean(
        x: torch.Tensor,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        less = int(unbiased) if correction is None else correction
        middle = mean(x, dim, True)
        count = math.prod(x.shape[i] for i in _axes(x, dim))
        variance = total((x - middle).square(), dim, keepdim) / (count - less)
        return variance, middle if keepdim else mean(x, dim)

    def norm(
        x: torch.Tensor, order: float = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any
    ) -> torch.Tensor:
        if order not in (1, 2):
            return aten.linalg_vector_norm(x, order, dim, keepdim, **kwargs)
        return total(x.abs() ** order, dim, keepdim) ** (1 / order)

    sums = {
        aten.sum: total, aten.mean: mean, aten.var_mean: var_mean, aten.cumsum: order.scan,
        aten.linalg_vector_norm: norm, aten.convolution: order.convolution,
        aten.var: lambda *args, **kwargs: var_mean(*args, **kwargs)[0],
    }  # fmt: skip
    return _products(order.product) | sums


def running() -> Order:
    """One float32 sum after the other, in order: the plainest honest algorithm."""
    return Order(_accumulated)


def backwards() -> Order:
    """As `running`, from the end: honest."""
    return Order(lambda x: _accumulated(x.flip(-1)), backwards=True)


def in_double() -> Order:
    """Summed in float64 and rounded once: honest."""
    return Order(
        lambda x: x.sum(-1, dtype=torch.float64).to(x.dtype), step=1 << 30, type=torch.float64
    )


def in_blocks(size: int) -> Order:
    """Running sums of blocks, then of these: as threads and warps do it. Honest."""

    def add_up(x: torch.Tensor) -> torch.Tensor:
        return _accumulated(torch.stack([_accumulated(part) for part in x.split(size, -1)], -1))

    return Order(add_up, step=size)


def narrow(rounding: Rounding, size: int, step: int) -> Order:
    """An accumulator that is rounded after every block of that size, in products of that depth."""

    def add_up(x: torch.Tensor) -> torch.Tensor:
        found = torch.zeros_like(x[..., 0])
        for part in x.split(size, -1):
            found = rounding(found + part.sum(-1))
        return found

    return Order(add_up, lambda so_far, part: rounding(so_far + part), step)


def convolved(
    x: torch.Tensor, weight: torch.Tensor, bias: Any, stride: list[int], padding: list[int], dilation: list[int],
    transposed: bool, output_padding: list[int], groups: int, backwards: bool = False,
) -> torch.Tensor:  # fmt: skip
    """A convolution with one accumulator for each output: channel by channel, in each tap by tap."""
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    shape = aten.convolution(x.to("meta"), weight.to("meta"), None, *rest).shape
    size, taps = shape[2:], weight.shape[2:]
    given = x.unflatten(1, (groups, -1))
    if transposed:  # (in, out / groups, taps) as (groups, out / groups, in / groups, taps)
        factors = weight.unflatten(0, (groups, -1)).transpose(1, 2)
        full = [
            (n - 1) * s + d * (t - 1) + 1
            for n, s, d, t in zip(x.shape[2:], stride, dilation, taps, strict=True)
        ]
        full = [max(n, p + o) for n, p, o in zip(full, padding, size, strict=True)]
    else:
        factors = weight.unflatten(0, (groups, -1))
        given = torch.nn.functional.pad(
            given, [p for each in reversed(padding) for p in (each, each)]
        )
        full = list(size)
    found = x.new_zeros(x.shape[0], groups, shape[1] // groups, *full)
    order = list(itertools.product(range(factors.shape[2]), *map(range, taps)))
    for channel, *tap in reversed(order) if backwards else order:
        ends = x.shape[2:] if transposed else size
        view = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, s, n in zip(tap, dilation, stride, ends, strict=True)
        )
        factor = factors[(slice(None), slice(None), channel, *tap)].reshape(
            groups, -1, *[1] * len(taps)
        )
        part = given[:, :, channel : channel + 1]
        if transposed:
            found[(..., *view)].addcmul_(part, factor)
        else:
            found.addcmul_(part[(..., *view)], factor)
    if transposed:
        found = found[(..., *(slice(p, p + n) for p, n in zip(padding, size, strict=True)))]
    found = found.flatten(1, 2)
    return found if bias is None else found + bias.reshape(-1, *[1] * len(taps))


def _accumulated(x: torch.Tensor) -> torch.Tensor:
    most = MOST_TERMS[x.device.type]
    if x.shape[-1] > most:
        whole = x.shape[-1] // most * most
        parts = [_accumulated(x[..., :whole].unflatten(-1, (-1, most)))]
        parts += [_accumulated(x[..., whole:])[..., None]] if whole < x.shape[-1] else []
        return _accumulated(torch.cat(parts, -1))
    if x.device.type == "cpu":
        sums = np.add.accumulate(x.contiguous().numpy(), axis=-1)
        return torch.from_numpy(sums)[..., -1].contiguous()
    terms = x.movedim(-1, 0).contiguous()
    found = terms[0].clone()
    for term in terms[1:]:
        found += term
    return found


def _prefix_sums(x: torch.Tensor, dim: int) -> torch.Tensor:
    if x.device.type == "cpu":
        return torch.from_numpy(np.add.accumulate(x.numpy(), axis=dim))
    sums = x.clone()
    for so_far, each in itertools.pairwise(sums.unbind(dim)):
        each += so_far
    return sums


def _products(product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Rules:
    def addmm(
        bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, **scales: Any
    ) -> torch.Tensor:
        return product(left, right) + bias

    def dot(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return product(left[None], right)[0]

    return {aten.mm: product, aten.bmm: product, aten.mv: product, aten.dot: dot, aten.addmm: addmm}


def _axes(x: torch.Tensor, dim: int | Sequence[int] | None) -> list[int]:
    if dim is None or dim == []:
        return list(range(x.dim()))
    return [axis % x.dim() for axis in ([dim] if isinstance(dim, int) else dim)]


def _if_float(rounding: Rounding, value: Any) -> Any:
    return (
        rounding(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    )
