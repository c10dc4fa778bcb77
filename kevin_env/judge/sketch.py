"""Input cases as shapes: what a candidate needs to compile its kernels for them before there is a device to hold."""

from typing import Any

import torch

from kevin_env.judge.cases import construction, handed_over
from kevin_env.judge.lease import Lease
from kevin_env.judge.memory import Image
from kevin_env.judge.reference import Case
from kevin_env.problem import Problem, ProblemError

Sketch = dict[str, Any]
"""JSON: the fields of the orders `construct` and `stage`. Places in regions mean nothing, and no seed is secret."""

_META = torch.device("meta")


class Sketches:
    """The sketches of every problem that was met. Making them takes the lease: they run in the clock's interpreter."""

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
    """The cases of a problem whose shapes can be had without drawing weights and inputs, in any order."""
    return [sketch for name in problem.cases if (sketch := _sketch(problem, name)) is not None]


def _sketch(problem: Problem, name: str) -> Sketch | None:
    try:
        case = Case(problem, name, _META)
        case.draw_weights(0)
        skeleton, tensors = case.draw_inputs("own", 0)
        weights, inputs = (Image([t.to(_META) for t in each], _META).specs for each in (handed_over(case), tensors))
    except (ProblemError, RuntimeError, TypeError):  # it needs data: its kernels are compiled when it is called
        return None
    return {"construct": construction(case, weights, seed=0), "stage": {"inputs": skeleton, "sets": [inputs]}}
