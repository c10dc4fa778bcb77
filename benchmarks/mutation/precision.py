"""Mutants in arithmetic that is too narrow, and honest arithmetic unlike the reference's."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import arithmetic
import rounding
import torch
from arithmetic import Replaced, Rules, aten, summed_by
from rounding import ROUNDINGS, Rounding

from kevin_env.candidate import tree

from . import functions
from .jury import Mutant
from .samples import Sample

BLOCK = 32
Made = Callable[[], Replaced]


def precision_mutants(sample: Sample) -> list[Mutant]:
    """Every narrower arithmetic that the reference meets and that changes what it gives for a
    sample.
    """
    return [each for each in _mutants() if _meets(each, sample) and _changes(each, sample)]


def honest_variants(sample: Sample) -> list[Mutant]:
    """Arithmetic that is no worse than float32's in another order; all of it has to be accepted."""
    return [each for each in _honest() if _changes(each, sample)]


def _mutants() -> Iterator[Mutant]:
    for name, narrower in ROUNDINGS.items():
        rules = arithmetic.rounded_operands(narrower)
        yield _replaced(
            f"{name} operands", f"operands of products in {name}", partial(Replaced, rules)
        )
        yield Mutant(
            "precision", f"{name} inputs", f"inputs in {name}", partial(_inputs, narrower=narrower)
        )
        yield Mutant(
            "precision",
            f"{name} weights",
            f"weights in {name}",
            partial(_weights, narrower=narrower),
        )
        everything = partial(Replaced, {}, narrower)
        yield _replaced(f"{name} intermediates", f"all intermediate results in {name}", everything)
        yield Mutant(
            "precision",
            f"{name} output",
            f"output rounded through {name}",
            partial(_output, narrower=narrower),
        )
        for size in (BLOCK, 1):
            if size == 1 and name == "tf32":
                continue  # nobody's accumulator
            sums = summed_by(arithmetic.narrow(narrower, size, size))
            what = (
                f"accumulators in {name}, rounded every {size}"
                if size > 1
                else f"accumulators in {name}"
            )
            yield _replaced(f"{name} accumulators", what, partial(Replaced, sums))
    for name, rules in _approximations():
        yield _replaced("fast approximation", name, partial(Replaced, rules))


def _approximations() -> Iterator[tuple[str, Rules]]:
    for degree in (2, 3, 4):
        exp = functions.exp_by(degree)
        yield (
            f"exp by a polynomial of degree {degree}",
            {aten.exp: exp, aten.sigmoid: _sigmoid(exp)},
        )
    for steps in (1, 2):
        both = {aten.rsqrt: functions.rsqrt_by(steps), aten.sqrt: functions.sqrt_by(steps)}
        yield f"rsqrt by {steps} Newton steps", both
    yield "erf to 2.5e-5", {aten.erf: functions.erf_cheap}
    yield "erf to 5e-4", {aten.erf: functions.erf_cheaper}
    named: dict[str, Any] = {
        "log": torch.log,
        "tanh": torch.tanh,
        "log1p": torch.log1p,
        "reciprocal": torch.reciprocal,
    }
    named |= {
        "exp": torch.exp,
        "rsqrt": torch.rsqrt,
        "erf": torch.erf,
        "sqrt": torch.sqrt,
        "atan2": torch.atan2,
    }
    for name, exact in named.items():
        for size in (1e-3, 1e-4):
            rule = _atan2(size) if name == "atan2" else functions.relative(size, exact)
            yield f"{name} off by {size:g} of itself", {getattr(aten, name): rule}
    for size in (1e-3, 1e-4):
        yield f"quotients off by {size:g} of themselves", {aten.div: partial(_div, size=size)}


def _honest() -> Iterator[Mutant]:
    sums: dict[str, Rules] = {
        "running float32 sums": summed_by(arithmetic.running()),
        "running float32 sums from the end": summed_by(arithmetic.backwards()),
        "float32 sums in blocks of 32": summed_by(arithmetic.in_blocks(BLOCK)),
        "float32 sums in blocks of 256": summed_by(arithmetic.in_blocks(256)),
        "float64 accumulators": summed_by(arithmetic.in_double()),
        "products of three TF32 products": arithmetic.by_parts(rounding.tf32),
        "exp as 2^(x log2 e)": {
            aten.exp: functions.exp_base_two,
            aten.sigmoid: _sigmoid(functions.exp_base_two),
        },
        "compound operators taken apart": {aten.triangular_solve: torch.triangular_solve},
        "quotients by reciprocals": {aten.div: _by_reciprocal},
    }
    for name, rules in sums.items():
        yield Mutant("honest", "honest", name, partial(_under, made=partial(Replaced, rules)))


def _replaced(kind: str, name: str, made: Made) -> Mutant:
    return Mutant("precision", kind, name, partial(_under, made=made))


def _under(sample: Sample, made: Made) -> Any:
    with made():
        return sample.answer()


def _inputs(sample: Sample, narrower: Rounding) -> Any:
    return sample.answer([narrower(t) if t.dtype == torch.float32 else t for t in sample.tensors])


def _weights(sample: Sample, narrower: Rounding) -> Any:
    parameters = [p.detach() for p in sample.case.model.parameters()]
    kept = [parameter.clone() for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.copy_(narrower(parameter))
        return sample.answer()
    finally:
        for parameter, before in zip(parameters, kept, strict=True):
            parameter.copy_(before)


def _output(sample: Sample, narrower: Rounding) -> Any:
    rounded = [_narrowed(output, narrower) for output in sample.outputs]
    return tree.unflatten(sample.shape, rounded)


def _narrowed(tensor: torch.Tensor, narrower: Rounding) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_complex(narrower(torch.view_as_real(tensor)).contiguous())
    return narrower(tensor) if tensor.is_floating_point() else tensor


def _meets(mutant: Mutant, sample: Sample) -> bool:
    """Whether the reference runs an operator that is replaced."""
    made = getattr(mutant.answer, "keywords", {}).get("made")
    if made is None:
        return True
    with made() as mode:
        sample.answer()
    return mode.touched > 0


def _changes(mutant: Mutant, sample: Sample) -> bool:
    found = tree.flatten(mutant.answer(sample))[1]
    return any(not torch.equal(a, b) for a, b in zip(found, sample.outputs, strict=True))


def _sigmoid(exp: Rounding) -> Rounding:
    return lambda x: 1 / (1 + exp(-x))


def _atan2(size: float) -> Callable[..., torch.Tensor]:
    return lambda y, x: torch.atan2(y, x) * (1 + size * torch.sin(7 * y))


def _div(left: Any, right: Any, size: float, **kwargs: Any) -> torch.Tensor:
    found = aten.div(left, right, **kwargs)
    return (
        found * (1 + size * torch.sin(7 * found))
        if found.is_floating_point() and not kwargs
        else found
    )


def _by_reciprocal(left: Any, right: Any, **kwargs: Any) -> torch.Tensor:
    if kwargs or not isinstance(right, torch.Tensor) or not right.is_floating_point():
        return aten.div(left, right, **kwargs)
    return left * torch.reciprocal(right)
