"""The input cases of a problem: which are judged on a device, and on which distributions."""

import random
from collections.abc import Iterator
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import Spec
from kevin_env.judge.api import Pace
from kevin_env.judge.capacity import host_memory
from kevin_env.judge.compare.outputs import in_float64
from kevin_env.judge.compare.values import all_finite, same_infinities
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS, admits_negative
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.problem import Problem, ProblemError

CPU_BYTES = 32 << 20
"""On a CPU a case with larger inputs is left out, unless it is the timed one.

So is `main` if there is `cpu`: it is made to keep a GPU busy, which its inputs may not show.
"""
CPU_COPIES = 8
"""The timed inputs must fit this often into a CPU's free memory: outputs take the rest."""
NOT_FINITE = (
    "the reference's output is NaN on its own inputs, infinite where float64 arithmetic is not, "
    "or infinite everywhere"
)


def timed_case(problem: Problem, device: torch.device) -> str:
    """The case that is timed: `main`, or on a CPU `cpu` if there is one."""
    return "cpu" if device.type == "cpu" and "cpu" in problem.cases else "main"


def open_cases(problem: Problem, device: torch.device) -> Iterator[Case]:
    """Every case that is judged on this device, held-out ones included, the timed one last.

    A GPU has all except `cpu`.

    Raises:
        ProblemError: if the problem's code fails.
    """
    timed = timed_case(problem, device)
    if device.type == "cpu":
        require_memory(problem, timed)
    others = (case for case in (*problem.cases, *problem.hidden) if case != timed)
    for name in (*others, timed):
        if name == timed or (
            name != "cpu"
            if device.type != "cpu"
            else name != "main" and _input_bytes(problem, name) <= CPU_BYTES
        ):
            yield Case(problem, name, device)


def distributions_of(case: Case) -> list[str]:
    """The distributions that the problem names, or all; only its own if no input can be redrawn."""
    named = getattr(case.module, "DISTRIBUTIONS", tuple(DISTRIBUTIONS))
    if not (isinstance(named, tuple | list) and named and set(named) <= set(DISTRIBUTIONS)):
        known = ", ".join(DISTRIBUTIONS)
        raise ProblemError(f"{case.problem}: DISTRIBUTIONS is {named!r}; list some of {known}")
    drawn = [each for each in case.structures if not each.kept]
    return [
        d for d in named
        if d == "own" or (any(map(admits_negative, drawn)) if d == "negative" else drawn)
    ]  # fmt: skip


def usable_distributions(case: Case, seed: int) -> list[str]:
    """The distributions on which a reference with drawn weights does not overflow or give NaN.

    Raises:
        ProblemError: if it fails or does so on its own inputs.
    """
    usable: list[str] = []
    for distribution in distributions_of(case):
        if _is_usable(case, distribution, seed):
            usable.append(distribution)
        elif distribution == "own":
            raise ProblemError(f"{case.problem}: {NOT_FINITE}")
    return usable


def plan(
    distributions: list[str], timed: bool, secret: str, case: str, pace: Pace, only: bool = False
) -> list[str]:
    """The distributions of the input sets that are screened in a case, in a secret order.

    Args:
        distributions: Those of the case.
        timed: Whether it is the timed case.
        secret: The secret of the judgement.
        case: Name of the case.
        pace: How many sets there are.
        only: Whether there is no other case, so that every distribution is used.
    """
    order = random.Random(seed_from(secret, case, "plan"))
    if not timed:
        return order.sample(distributions, min(pace.sets_of_others, len(distributions)))
    planned, count = list(distributions), max(pace.sets, len(distributions) if only else 0)
    while len(planned) < count:
        planned.append(order.choice(distributions))
    order.shuffle(planned)
    return planned[:count]


def model_tensors(case: Case) -> list[torch.Tensor]:
    """The tensors of a candidate's model: the reference's tensor arguments, then its state."""
    return [*_init(case)[1], *case.state().values()]


def construction(
    case: Case, specs: list[Spec], seed: int, compiled: bool = False
) -> dict[str, Any]:
    """The fields of the order `construct`; `specs` are the places of `model_tensors`."""
    init, tensors = _init(case)
    count = len(tensors)
    return {
        "init": init, "tensors": specs[:count],
        "state": dict(zip(case.state(), specs[count:], strict=True)),
        "parameters": case.parameters(), "seed": seed, "compiled": compiled,
        "precision": case.precision, "dtype": case.dtype,
        "gradients": case.gradients and case.gradients.order(),
    }  # fmt: skip


def _init(case: Case) -> tuple[tree.Skeleton, list[torch.Tensor]]:
    given, named = case.init_inputs
    return tree.flatten([list(given), named])


def _is_usable(case: Case, distribution: str, seed: int) -> bool:
    """Whether outputs are finite, or infinite where those of float64 arithmetic are, too."""
    skeleton, tensors = case.draw_inputs(distribution, seed)
    try:
        expected = case.expect(skeleton, tensors, seed)
        outputs = tree.flatten(expected.output)[1]
        return all_finite(outputs) or all(
            map(same_infinities, outputs, in_float64(expected.oracle, outputs))
        )
    except ProblemError:
        if distribution == "own":
            raise
        return False  # such as a factorization of an indefinite matrix


def _input_bytes(problem: Problem, name: str) -> int:
    """Bytes of a case's inputs, from shapes alone if these do not depend on values.

    Raises:
        ProblemError: if the problem's code fails.
    """
    try:
        _, tensors = Case(problem, name, torch.device("meta")).own_inputs(0)
    except (ProblemError, NotImplementedError):
        _, tensors = Case(problem, name, torch.device("cpu")).own_inputs(0)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def require_memory(problem: Problem, name: str) -> None:
    """Raises a ProblemError if a CPU's memory is too small for the timed case."""
    wanted, free = _input_bytes(problem, name), host_memory()
    if CPU_COPIES * wanted > free:
        raise ProblemError(
            f"{problem.id}: inputs of {wanted / 1e9:.1f} GB are too large for a CPU with "
            f"{free / 1e9:.1f} GB of free memory: judge it on a GPU, or add a small case "
            "`cpu` to its CASES"
        )
