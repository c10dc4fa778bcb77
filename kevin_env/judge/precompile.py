"""Shapes of a problem's cases: a candidate compiles its kernels for them without a device."""

from functools import partial
from typing import Any

import torch

from kevin_env.frozen import Frozen
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.cases import construction, model_tensors
from kevin_env.judge.inputs.facts import FactStore
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lane import Lane
from kevin_env.judge.workers.errors import TimedOut
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem

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


class ShapeSpec(Frozen, allow_inf_nan=True):
    """One case of a problem as shapes.

    Attributes:
        orders: The fields of `construct` and `stage`, as JSON. Places in regions mean nothing, and
            no seed is secret.
    """

    orders: dict[str, Any]


class Shapes(Frozen):
    """The cases of a problem whose shapes can be found without drawing weights and inputs."""

    cases: tuple[ShapeSpec, ...]


class ShapeStore:
    """The shapes of problems.

    Finding them takes the lane, since it runs in the interpreter that times others.
    """

    def __init__(self, lane: Lane, facts: FactStore) -> None:
        self._lane = lane
        self._facts = facts

    def of(self, problem: Problem) -> Shapes:
        """As `find_shapes`, once per problem. Call outside the lane."""
        find, held = partial(find_shapes, problem), self._lane.entered
        return self._facts.kept("shapes", problem, Shapes, find, held)


def find_shapes(problem: Problem) -> Shapes:
    """The shapes of a problem's cases."""
    found = [_shape_spec(problem, name) for name in problem.cases]
    return Shapes(cases=tuple(each for each in found if each is not None))


def precompile(worker: Worker, shapes: Shapes, left: float) -> None:
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
            cases=[case.orders for case in shapes.cases],
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
    return ShapeSpec(orders=orders)
