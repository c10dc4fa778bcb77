"""Which input cases a verdict covers on a device, and which input sets it draws from them."""

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
"""On a CPU a case with larger inputs than this is left out, unless it is the timed one. So is
`main` where there is `cpu`: it is made to keep a GPU busy, which its inputs alone may not show.
"""


@dataclass(frozen=True)
class Nature:
    """What the reference of a case is like, whatever is drawn.

    Attributes:
        stochastic: Whether it draws at random while it runs.
        distributions: Those on which it stays finite.
        seconds: A call of it, on what else is done on the device at that moment.
        structures: What the draws of each input have in common.
    """

    stochastic: bool
    distributions: list[str]
    seconds: float
    structures: tuple[Structure, ...]


def nature_key(problem: Problem, case: str, inputs: str) -> tuple[str, str, str]:
    """What a nature is remembered by: `inputs` is the way in which they are drawn, as in `Options`."""
    return problem.sha256, case, inputs


def timed_case(problem: Problem, device: torch.device) -> str:
    """The case that is timed: `main`, on a CPU `cpu` where there is one."""
    return "cpu" if device.type == "cpu" and "cpu" in problem.cases else "main"


def open_cases(problem: Problem, device: torch.device) -> Iterator[Case]:
    """Every case that a verdict covers on this device; the timed one last. On a GPU that is all but
    `cpu`.

    Raises:
        ProblemError: when the problem's own code fails.
    """
    timed = timed_case(problem, device)
    for name in (*(case for case in problem.cases if case != timed), timed):
        if name == timed or (
            name != "cpu" if device.type != "cpu" else name != "main" and _fits_cpu(problem, name)
        ):
            yield Case(problem, name, device)


def usable_distributions(case: Case, seed: int, inputs: str = "varied") -> list[str]:
    """The distributions on which the reference of a drawn case stays finite; `own` alone where
    inputs are `shipped`.

    Raises:
        ProblemError: when it fails or is not finite on its own inputs.
    """
    usable: list[str] = []
    for distribution in ["own"] if inputs == "shipped" else distributions_of(case):
        if _is_finite(case, distribution, seed):
            usable.append(distribution)
        elif distribution == "own":
            raise ProblemError("the reference's output is not finite on its own inputs")
    return usable


def seconds_of(case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor]) -> float:
    """What a call of the reference takes, which has been called before; the shorter of two."""
    found: list[float] = []
    for _ in range(2):
        finish(case.device)
        start = time.perf_counter()
        case.answer(skeleton, tensors, seed=0)
        finish(case.device)
        found.append(time.perf_counter() - start)
    return min(found)


def plan(
    distributions: list[str], timed: bool, secret: str, case: str, pace: Pace, only: bool = False
) -> list[str]:
    """The distribution of each input set that is screened in a case, in an order that the secret
    decides.

    Args:
        distributions: Of the case.
        timed: Whether it is the one that is timed.
        secret: Of the judgement.
        case: Its name.
        pace: How many sets there are.
        only: Whether there is no other case, so that it meets every distribution.
    """
    order = random.Random(seed_from(secret, case, "plan"))
    if not timed:
        return order.sample(distributions, min(pace.sets_of_others, len(distributions)))
    planned, count = list(distributions), max(pace.sets, len(distributions) if only else 0)
    while len(planned) < count:
        planned.append(order.choice(distributions))
    order.shuffle(planned)
    return planned[:count]


def handed_over(case: Case) -> list[torch.Tensor]:
    """The tensors that a candidate needs for its model: those among the reference's arguments, then
    its state.
    """
    return [*tree.take_apart(case.init_inputs)[1], *case.state().values()]


def construction(
    case: Case, specs: list[Spec], seed: int, compiled: bool = False
) -> dict[str, Any]:
    """The fields of the order `construct`, with the places of what `handed_over` gives."""
    init, tensors = tree.take_apart(case.init_inputs)
    return {
        "init": init, "tensors": specs[: len(tensors)],
        "state": dict(zip(case.state(), specs[len(tensors) :], strict=True)), "parameters": case.parameters(),
        "seed": seed, "compiled": compiled, "precision": case.precision,
    }  # fmt: skip


def _is_finite(case: Case, distribution: str, seed: int) -> bool:
    skeleton, tensors = case.draw_inputs(distribution, seed)
    try:
        return all_finite(tree.take_apart(case.answer(skeleton, tensors, seed))[1])
    except ProblemError:
        if distribution == "own":
            raise
        return False  # such as a factorization of what is not definite


def _fits_cpu(problem: Problem, name: str) -> bool:
    """Whether a case is small, from shapes alone; False when they cannot be had without drawing the
    inputs.
    """
    try:
        case = Case(problem, name, torch.device("meta"))
        _, tensors = case.draw_inputs("own", 0)
    except (ProblemError, NotImplementedError):
        return False
    return sum(t.numel() * t.element_size() for t in tensors) <= CPU_BYTES


SECONDS = 20.0
"""For compiling a submission's Triton kernels beforehand: several times what one takes, and one
that tries hundreds of configurations of it holds nobody up for long. What is not compiled then is
compiled by the calls.
"""


SLACK = 10.0
"""Seconds more for the answer, at least: the candidate ends what is late by itself. How long that
takes is for others to choose, who keep the processors busy, so that it has all that is left for
building.
"""


_META = torch.device("meta")


@dataclass(frozen=True)
class Sketch:
    """A case of a problem as shapes.

    Attributes:
        orders: JSON, the fields of `construct` and `stage`. Places in regions mean nothing, and no
            seed is secret.
        call: Bytes of the inputs of a call, and of its outputs where these can be had without data.
    """

    orders: dict[str, Any]
    call: int


class Sketches:
    """The sketches of every problem that was met. Making them takes the lease: they run in the
    clock's interpreter.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._known: dict[str, list[Sketch]] = {}

    def of(self, problem: Problem) -> list[Sketch]:
        """As `sketches`, once for a problem. Hold no lease."""
        if problem.sha256 not in self._known:
            with self._lease.shared():
                self._known[problem.sha256] = sketches(problem)
        return self._known[problem.sha256]


def sketches(problem: Problem) -> list[Sketch]:
    """The cases of a problem whose shapes can be had without drawing weights and inputs, in any
    order.
    """
    return [sketch for name in problem.cases if (sketch := _sketch(problem, name)) is not None]


def largest_call(cases: Sequence[Sketch]) -> int:
    """Bytes of the inputs and outputs of a problem's largest call; 0 where they cannot be had
    without data.
    """
    return max((case.call for case in cases), default=0)


def precompile(worker: Worker, cases: Sequence[Sketch], left: float) -> None:
    """Has a loaded submission compile what would else be compiled while it holds the device.

    Nothing that it answers is read, and all that it can leave is files in its own folder, as at
    import.

    Args:
        worker: The submission.
        cases: For which.
        left: Seconds of building that are left.

    Raises:
        Trouble: when it ends meanwhile, or never answers.
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


def _sketch(problem: Problem, name: str) -> Sketch | None:
    try:
        case = Case(problem, name, _META)
        case.draw_weights(0)
        skeleton, tensors = case.draw_inputs("own", 0)
        weights, inputs = (
            Image([t.to(_META) for t in each], _META) for each in (handed_over(case), tensors)
        )
    except (
        Exception
    ):  # it needs data, or fails: its kernels are compiled, and failures told, when it is called
        return None
    orders = {
        "construct": construction(case, weights.specs, seed=0),
        "stage": {"inputs": skeleton, "specs": inputs.specs},
    }
    return Sketch(orders, inputs.end + _answer_bytes(case, skeleton, inputs.tensors))


def _answer_bytes(case: Case, skeleton: tree.Skeleton, inputs: list[torch.Tensor]) -> int:
    try:
        return image_size(tree.take_apart(case.answer(skeleton, inputs, 0))[1])
    except Exception:  # it looks at values
        return 0
