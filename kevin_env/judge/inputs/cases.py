"""The input cases of a problem: which are judged on a device, their properties, and their shapes.

With the shapes alone a candidate compiles its kernels before it needs a device.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import Spec
from kevin_env.judge.api import Pace
from kevin_env.judge.compare.chunked import all_finite
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.memory import Image, image_size
from kevin_env.judge.inputs.reference import Case, distributions_of, seed_from
from kevin_env.judge.inputs.structure import Structure
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.errors import TimedOut
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem, ProblemError

CPU_BYTES = 32 << 20
"""On a CPU a case with larger inputs is left out, unless it is the timed one.

So is `main` if there is `cpu`: it is made to keep a GPU busy, which its inputs may not show.
"""
FEW_SETS = 2
"""Input sets of a case that suffice for a submission that is much slower than the reference."""


@dataclass(frozen=True)
class CaseProperties:
    """What holds for every draw of a case.

    Attributes:
        stochastic: Whether the reference draws random numbers while it runs.
        distributions: Those on which its output stays finite.
        seconds: Duration of one call of the reference, measured while the device is shared.
        structures: The structure of each input.
        inputs: Bytes of an image of the inputs.
        outputs: Meta tensors of the shapes and dtypes of its outputs.
        largest: Elements of the largest input, weight or output.
    """

    stochastic: bool
    distributions: list[str]
    seconds: float
    structures: tuple[Structure, ...]
    inputs: int
    outputs: list[torch.Tensor]
    largest: int


def properties_key(problem: Problem, case: str, inputs: str) -> tuple[str, str, str]:
    """The cache key of a case's properties; `inputs` as in `Options`."""
    return problem.sha256, case, inputs


def timed_case(problem: Problem, device: torch.device) -> str:
    """The case that is timed: `main`, or on a CPU `cpu` if there is one."""
    return "cpu" if device.type == "cpu" and "cpu" in problem.cases else "main"


def open_cases(problem: Problem, device: torch.device) -> Iterator[Case]:
    """Every case that is judged on this device, the timed one last. A GPU has all except `cpu`.

    Raises:
        ProblemError: if the problem's code fails.
    """
    timed = timed_case(problem, device)
    for name in (*(case for case in problem.cases if case != timed), timed):
        if name == timed or (
            name != "cpu" if device.type != "cpu" else name != "main" and _fits_cpu(problem, name)
        ):
            yield Case(problem, name, device)


def usable_distributions(case: Case, seed: int, inputs: str = "varied") -> list[str]:
    """The distributions on which a reference with drawn weights stays finite.

    Only `own` if `inputs` is `shipped`.

    Raises:
        ProblemError: if it fails or is not finite on its own inputs.
    """
    usable: list[str] = []
    for distribution in ["own"] if inputs == "shipped" else distributions_of(case):
        if _is_finite(case, distribution, seed):
            usable.append(distribution)
        elif distribution == "own":
            raise ProblemError("the reference's output is not finite on its own inputs")
    return usable


def find_properties(case: Case, problem: Problem, inputs: str) -> CaseProperties:
    """The properties of a case with drawn weights.

    Raises:
        ProblemError: if the reference fails or is not finite on its own inputs.
    """
    # not from the secret: a turn that is judged again has the same distributions
    probe = seed_from(problem.sha256, case.name, "probe")
    skeleton, tensors = case.draw_inputs("own", probe)
    case.find_randomness(skeleton, tensors)
    usable = usable_distributions(case, probe, inputs)
    seconds, answer = timed_answer(case, skeleton, tensors)
    outputs = [output.to(_META) for output in tree.flatten(answer)[1]]
    largest = max((t.numel() for t in (*tensors, *model_tensors(case), *outputs)), default=0)
    return CaseProperties(
        case.stochastic, usable, seconds, case.structures, image_size(tensors), outputs, largest
    )


def timed_answer(
    case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor]
) -> tuple[float, Any]:
    """Seconds of one call of a reference, the shorter of two, and its answer.

    The reference has been called before.
    """
    durations, answer = list[float](), None
    for _ in range(2):
        del answer  # before there is another
        finish(case.device)
        start = time.perf_counter()
        answer = case.answer(skeleton, tensors, seed=0)
        finish(case.device)
        durations.append(time.perf_counter() - start)
    return min(durations), answer


def plan(
    distributions: list[str], timed: bool, secret: str, case: str, pace: Pace, only: bool = False
) -> list[str]:
    """The distributions of the input sets that are screened in a case, in a secret order.

    `own`, if it is among them, is the first or the second: only its calls show how slow a
    submission is, and a much slower one is called on few sets. Which sets there are stays as drawn.
    To know this helps no submission: it has to answer every set, values are drawn from the secret,
    and those of `own` are the least known of all.

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
        others = order.sample(distributions, min(pace.sets_of_others, len(distributions)))
        return _own_early(others, order)
    planned, count = list(distributions), max(pace.sets, len(distributions) if only else 0)
    while len(planned) < count:
        planned.append(order.choice(distributions))
    order.shuffle(planned)
    return _own_early(planned[:count], order)


def _own_early(planned: list[str], order: random.Random) -> list[str]:
    if "own" in planned:
        planned.remove("own")
        planned.insert(order.randrange(FEW_SETS), "own")
    return planned


def model_tensors(case: Case) -> list[torch.Tensor]:
    """The tensors of a candidate's model: the reference's tensor arguments, then its state."""
    return [*tree.flatten(case.init_inputs)[1], *case.state().values()]


def construction(
    case: Case, specs: list[Spec], seed: int, compiled: bool = False
) -> dict[str, Any]:
    """The fields of the order `construct`; `specs` are the places of `model_tensors`."""
    init, tensors = tree.flatten(case.init_inputs)
    count = len(tensors)
    return {
        "init": init, "tensors": specs[:count],
        "state": dict(zip(case.state(), specs[count:], strict=True)),
        "parameters": case.parameters(), "seed": seed, "compiled": compiled,
        "precision": case.precision,
    }  # fmt: skip


def _is_finite(case: Case, distribution: str, seed: int) -> bool:
    skeleton, tensors = case.draw_inputs(distribution, seed)
    try:
        return all_finite(tree.flatten(case.answer(skeleton, tensors, seed))[1])
    except ProblemError:
        if distribution == "own":
            raise
        return False  # such as a factorization of an indefinite matrix


def _fits_cpu(problem: Problem, name: str) -> bool:
    """Whether a case is small, from shapes alone; False if its inputs have to be drawn to know."""
    try:
        case = Case(problem, name, torch.device("meta"))
        _, tensors = case.draw_inputs("own", 0)
    except (ProblemError, NotImplementedError):
        return False
    return sum(t.numel() * t.element_size() for t in tensors) <= CPU_BYTES


SECONDS = 20.0
"""Limit for compiling a submission's Triton kernels ahead: several times what one kernel takes.

A submission with hundreds of configurations blocks no other for long; its calls compile the rest.
"""
SLACK = 10.0
"""Least number of additional seconds for the answer.

The candidate stops late compilers itself. On a busy machine that takes a while, so that it may use
all that is left of the build time.
"""
_META = torch.device("meta")


@dataclass(frozen=True)
class ShapeSpec:
    """One case of a problem as shapes.

    Attributes:
        orders: The fields of `construct` and `stage`, as JSON. Places in regions mean nothing, and
            no seed is secret.
        call: Bytes of the inputs of a call, and of its outputs if their shapes need no data.
    """

    orders: dict[str, Any]
    call: int


class ShapeSpecs:
    """The shape specs of every problem seen so far.

    Computing them takes the lease, since it runs in the interpreter that times others.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._known: dict[str, list[ShapeSpec]] = {}

    def of(self, problem: Problem) -> list[ShapeSpec]:
        """As `shape_specs`, once per problem. Call without holding the lease."""
        if problem.sha256 not in self._known:
            with self._lease.shared():
                self._known[problem.sha256] = shape_specs(problem)
        return self._known[problem.sha256]


def shape_specs(problem: Problem) -> list[ShapeSpec]:
    """The cases of a problem whose shapes can be found without drawing weights and inputs."""
    return [spec for name in problem.cases if (spec := _shape_spec(problem, name)) is not None]


def largest_call(cases: Sequence[ShapeSpec]) -> int:
    """Bytes of inputs and outputs of a problem's largest call; 0 if unknown."""
    return max((case.call for case in cases), default=0)


def precompile(worker: Worker, cases: Sequence[ShapeSpec], left: float) -> None:
    """Compiles a loaded submission's Triton kernels, which would otherwise happen on the device.

    The answer is not read; the only result is files in the candidate's folder, as after an import.
    `left` are the seconds that are left of the build time.

    Raises:
        CandidateError: if it ends meanwhile, or does not answer.
    """
    seconds = min(SECONDS, max(0.0, left))
    try:
        worker.ask(
            "precompile",
            max(left, seconds + SLACK),
            cases=[case.orders for case in cases],
            seconds=seconds,
        )
    except TimedOut as late:
        raise TimedOut(late.seconds, "compiling its Triton kernels, which never ended,") from None


def _shape_spec(problem: Problem, name: str) -> ShapeSpec | None:
    try:
        case = Case(problem, name, _META)
        case.draw_weights(0)
        skeleton, tensors = case.draw_inputs("own", 0)
        weights, inputs = (
            Image([t.to(_META) for t in each], _META) for each in (model_tensors(case), tensors)
        )
    except Exception:  # it needs data, or fails: kernels are then compiled by the first call
        return None
    orders = {
        "construct": construction(case, weights.specs, seed=0),
        "stage": {"inputs": skeleton, "specs": inputs.specs},
    }
    return ShapeSpec(orders, inputs.end + _answer_bytes(case, skeleton, inputs.tensors))


def _answer_bytes(case: Case, skeleton: tree.Skeleton, inputs: list[torch.Tensor]) -> int:
    try:
        return image_size(tree.flatten(case.answer(skeleton, inputs, 0))[1])
    except Exception:  # the shapes depend on values
        return 0
