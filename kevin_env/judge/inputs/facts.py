"""What the prompt says about a problem, found by running the reference once per case."""

from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import CaseFacts, DeviceInfo, Facts, InputFacts, Options
from kevin_env.judge.compare import tolerance as budgets
from kevin_env.judge.compare.chunked import is_rounded
from kevin_env.judge.compare.values import dtype_name
from kevin_env.judge.inputs.cases import open_cases, timed_answer, usable_distributions
from kevin_env.judge.inputs.distributions import TOLD, described, has_outliers
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.inputs.source import overrides_of
from kevin_env.judge.inputs.structure import Structure
from kevin_env.problem import Problem

SEED = 1


def find_facts(problem: Problem, device: torch.device, info: DeviceInfo, options: Options) -> Facts:
    """The facts of a problem that is judged with these options.

    Raises:
        ProblemError: if its reference fails.
    """
    cases: list[CaseFacts] = []
    for case in open_cases(problem, device):
        case.draw_weights(SEED)
        usable = usable_distributions(case, SEED, options.inputs)
        drawn = case.draw_inputs("own", SEED)
        output = tree.flatten(case.expect(*drawn, SEED).output)[1]
        cases.append(_case_facts(case, drawn, output, overrides_of(problem, case.name)))
    timed = case
    return Facts(
        device=info,
        cases=tuple(reversed(cases)),
        distributions=tuple(f"{name}: {_text(name, usable, timed.structures)}" for name in usable),
        tolerance=_tolerance(timed, output),
        precision=timed.precision,
        weights=tuple(f"{name}: {_label(tensor)}" for name, tensor in timed.state().items()),
        limits=options.limits(timed_answer(timed, *drawn)[0]),
    )


def _text(distribution: str, usable: list[str], structures: tuple[Structure, ...]) -> str:
    return TOLD if has_outliers(distribution, usable) else described(distribution, structures)


def _case_facts(
    case: Case, drawn: tuple[tree.Skeleton, list[torch.Tensor]], outputs: list[torch.Tensor],
    overrides: dict[str, Any],
) -> CaseFacts:  # fmt: skip
    skeleton, tensors = drawn
    stated = [structure.stated() for structure in case.structures]
    return CaseFacts(
        name=case.name,
        overrides=overrides,
        inputs=tuple(
            _input_facts(case.argument_name(i), value, tensors, stated)
            for i, value in enumerate(tree.unflatten(skeleton, tensors))
        ),
        outputs=tuple(_label(tensor) for tensor in outputs),
    )


def _input_facts(
    name: str, value: Any, tensors: list[torch.Tensor], stated: list[tuple[str, ...]]
) -> InputFacts:
    if not isinstance(value, torch.Tensor):
        return InputFacts(name=name, dtype=type(value).__name__)
    index = next(i for i, tensor in enumerate(tensors) if tensor is value)
    low = high = None
    if value.numel() and not is_rounded(value):
        low, high = float(value.min()), float(value.max())  # the same in every distribution
    shape, structure = tuple(value.shape), stated[index]
    return InputFacts(
        name=name,
        dtype=dtype_name(value.dtype),
        shape=shape,
        low=low,
        high=high,
        structure=structure,
    )


def _tolerance(case: Case, output: list[torch.Tensor]) -> str:
    """How outputs are compared, for their dtypes."""
    dtypes = dict.fromkeys(tensor.dtype for tensor in output)
    floating = [dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    exact = ["Integers and bools must be exact."] if len(floating) < len(dtypes) else []
    return " ".join([*exact, *(_tolerance_of(case, dtype, len(dtypes) > 1) for dtype in floating)])


def _tolerance_of(case: Case, dtype: torch.dtype, named: bool) -> str:
    kind = torch.float32 if dtype.is_complex else dtype
    multiple, share = budgets.allowance(kind, case.precision)
    eps, factor = torch.finfo(kind).eps, case.tolerance
    name = dtype_name(dtype) + " " if named else ""
    text = (
        f"Per {name}element, abs(y - y64) <= "
        f"max({multiple * factor:g} x the reference's largest error, "
        f"{share / eps * factor:g} eps x std(output)), where y64 is computed in float64."
    )
    if kind == torch.float32:
        text += (
            f" {budgets.PLAIN_MULTIPLE:g} x the estimated error of one float32 accumulator per sum"
            " is always allowed."
        )
    if case.precision != "ieee":
        return text
    many, least = budgets.rms_allowance(kind)
    return (
        f"{text} Over {budgets.MANY} or more elements, RMS error <= max({many * factor:g} x the "
        f"reference's RMS error, {least * factor:g} eps x std(output))."
    )


def _label(tensor: torch.Tensor) -> str:
    return f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"
