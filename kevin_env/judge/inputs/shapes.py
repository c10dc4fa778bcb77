"""Input cases as shapes: with these a candidate compiles its kernels for them before there is a
device to hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge.handshake.memory import Image, image_size
from kevin_env.judge.inputs.cases import construction, handed_over
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.errors import TimedOut
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem

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
