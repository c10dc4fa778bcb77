"""What the prompt says of a problem on a device, found by running the reference once per case."""

import inspect
import math
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge import plant, verify
from kevin_env.judge.api import CaseFacts, DeviceInfo, Facts, InputFacts
from kevin_env.judge.cases import open_cases, usable_distributions
from kevin_env.judge.distributions import described
from kevin_env.judge.inputstructure import Structure
from kevin_env.judge.reference import Case
from kevin_env.problem import Problem

SEED = 1


def find_facts(problem: Problem, device: torch.device, info: DeviceInfo, inputs: str = "varied") -> Facts:
    """The facts of a problem, of which `inputs` are checked.

    Raises:
        ProblemError: when its reference fails.
    """
    cases: list[CaseFacts] = []
    for case in open_cases(problem, device):
        case.draw_weights(SEED)
        usable = usable_distributions(case, SEED, inputs)
        cases.append(_case_facts(case, usable))
    timed = case
    return Facts(
        device=info,
        cases=tuple(reversed(cases)),
        distributions=tuple(f"{name}: {_told(name, usable, timed.structures)}" for name in usable),
        tolerance=_tolerance(timed),
        precision=timed.precision,
        weights=tuple(f"{name}: {_label(tensor)}" for name, tensor in timed.state().items()),
    )


def _told(distribution: str, usable: list[str], structures: tuple[Structure, ...]) -> str:
    return plant.TOLD if plant.planted(distribution, usable) else described(distribution, structures)


def _case_facts(case: Case, distributions: list[str]) -> CaseFacts:
    ranges: dict[int, tuple[float, float]] = {}
    skeleton, tensors = case.draw_inputs("own", SEED)
    output = case.expect(skeleton, tensors, SEED).output
    for distribution in distributions:
        _, drawn = case.draw_inputs(distribution, SEED)
        for i, tensor in enumerate(drawn):
            if tensor.numel() and not tensor.is_complex():
                low, high = float(verify.widened(tensor).min()), float(verify.widened(tensor).max())
                before = ranges.get(i, (low, high))
                ranges[i] = (min(low, before[0]), max(high, before[1]))
    stated = [structure.stated() for structure in case.structures]
    names = list(inspect.signature(case.module.Model.forward).parameters)[1:]
    inputs = tree.put_together(skeleton, tensors)
    told = [_input_facts(_name(names, i), value, tensors, ranges, stated) for i, value in enumerate(inputs)]
    outputs = tree.take_apart(output)[1]
    return CaseFacts(name=case.name, inputs=tuple(told), outputs=tuple(_label(t) for t in outputs))


def _input_facts(
    name: str, value: Any, tensors: list[torch.Tensor], ranges: dict[int, tuple[float, float]],
    stated: list[tuple[str, ...]],
) -> InputFacts:  # fmt: skip
    if not isinstance(value, torch.Tensor):
        return InputFacts(name=name, dtype=type(value).__name__)
    index = next(i for i, tensor in enumerate(tensors) if tensor is value)
    low, high = ranges.get(index, (None, None))
    if low is None or high is None or not math.isfinite(low - high):  # a mask of -inf has no range
        low = high = None
    shape, structure = tuple(value.shape), stated[index]
    return InputFacts(name=name, dtype=_dtype(value), shape=shape, low=low, high=high, structure=structure)


def _tolerance(case: Case) -> str:
    many, share = verify.allowance(torch.float32, case.precision)
    ulps = share / torch.finfo(torch.float32).eps
    text = (
        "integers and bools must be exact; a float32 element may differ from float64 arithmetic by at most "
        f"{many * case.tolerance:g} times the reference's own largest error, and always by {ulps * case.tolerance:g} "
        f"ulps of the output's standard deviation ({verify.LOW_MULTIPLE * case.tolerance:g} times and "
        f"{verify.LOW_ULPS * case.tolerance:g} ulps for 16-bit and 8-bit floats); where one float32 accumulator for "
        f"each sum needs more, by {verify.PLAIN_MULTIPLE:g} times the error that is estimated for it"
    )
    if case.precision != "ieee":
        return text
    return (
        f"{text}; {verify.MANY} or more elements may be off together (root mean square) by "
        f"{verify.RMS_MULTIPLE * case.tolerance:g} times what the reference is, "
        f"and always by {verify.RMS_ULPS * case.tolerance:g} of those ulps "
        f"({verify.LOW_RMS_MULTIPLE * case.tolerance:g} times and {verify.LOW_RMS_ULPS * case.tolerance:g} "
        "for 16-bit and 8-bit floats)"
    )


def _name(names: list[str], index: int) -> str:
    return names[index] if index < len(names) else f"input {index}"


def _label(tensor: torch.Tensor) -> str:
    return f"{_dtype(tensor)}{list(tensor.shape)}"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
