"""Shapes of a problem's cases: a candidate compiles and records its kernels for them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate.replay import all_steps
from kevin_env.frozen import Frozen
from kevin_env.judge.handshake.claims import MALFORMED
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.cases import construction, model_tensors
from kevin_env.judge.inputs.facts import KnownCase
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.workers.errors import Broken, Failed, Failure, TimedOut
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem
from kevin_env.rules.recorded import Operation, Record, Rules, harmless, recording

SECONDS = 20.0
"""Limit for compiling a submission's Triton kernels ahead: several times what one kernel takes.

A submission with hundreds of configurations blocks no other for long; its calls compile the rest.
"""
SLACK = 10.0
"""Least number of additional seconds for the answer.

The candidate stops late compilers itself. On a busy machine that takes a while, so that it may use
all that is left of the build time.
"""
LONGEST_REASON = 200
"""Characters of a reason why there is no recording."""
MOST_OPERATIONS = 64
"""Of a record."""
Properties = dict[str, int | float | str | bool]
"""Of a GPU, as torch names them."""
_META = torch.device("meta")


class ShapeSpec(Frozen, allow_inf_nan=True):
    """One case of a problem as shapes.

    Attributes:
        name: Of the case.
        orders: The fields of `construct` and `stage`, as JSON. Places in regions mean nothing, and
            no seed is secret.
    """

    name: str
    orders: dict[str, Any]


class Shapes(Frozen):
    """The cases of a problem whose shapes can be found without drawing weights and inputs."""

    cases: tuple[ShapeSpec, ...]


def properties_of(device: torch.device) -> Properties:
    """The properties of a GPU."""
    found = torch.cuda.get_device_properties(device)
    values = {name: getattr(found, name, None) for name in dir(found) if name[0] != "_"}
    return {name: each for name, each in values.items() if isinstance(each, int | float | str)}


def find_shapes(problem: Problem, device: torch.device = _META) -> Shapes:
    """The shapes of a problem's cases, those that can be found on a device included."""
    found = [
        _shape_spec(problem, name, _META) or _shape_spec(problem, name, device)
        for name in (*problem.cases, *problem.hidden)
    ]
    return Shapes(cases=tuple(each for each in found if each is not None))


@dataclass(frozen=True)
class Recording:
    """What a submission launches, in place of its process. A claim.

    Attributes:
        cases: By name, for `kevin_env.candidate.replay`.
        kernels: What they launch.
    """

    cases: dict[str, Any]
    kernels: dict[str, Any]

    def holds(self, cases: Iterable[KnownCase]) -> bool:
        """Whether it has all of these cases."""
        return self.cases.keys() >= {each.told.name for each in cases}

    def with_cases(self, other: "Recording") -> "Recording":
        """It, with the cases of another recording of the same submission."""
        return Recording(self.cases | other.cases, self.kernels | other.kernels)

    def record(self, case: str, claimed: Record) -> Record:
        """What the calls in a case do: what is claimed, and what the list has besides.

        Raises:
            Broken: if it is no list.
        """
        try:
            calls = [self.cases[case][name]["steps"] for name in ("first", "later")]
            steps = [step for call in calls for step in all_steps(call)]
            known = {each.name for each in claimed.operations} | harmless()
            further = {
                name: max(_elements(step), 1)
                for step in sorted(steps, key=_elements)
                if "op" in step and (name := f"aten::{step['op'][0]}") not in known
            }
            launched = any("kernel" in step for step in all_steps(calls[1]))
        except MALFORMED as error:
            raise Broken("its recording is malformed") from error
        operations = [
            Operation(name=name[:160], line=None, weights=False, elements=elements)
            for name, elements in further.items()
        ]
        both = (*operations, *claimed.operations)[:MOST_OPERATIONS]
        kernels = claimed.kernels if launched else []
        return claimed.model_copy(update={"operations": [*both], "kernels": kernels})


def _elements(step: Any) -> int:
    """Of the largest tensor that an operation reads or makes."""
    views = [
        each["tensor"]
        for each in step.get("args", ())
        if isinstance(each, dict) and "tensor" in each
    ]
    views += [each for each in step.get("outs", ()) if each]
    return max((math.prod(view[2]) for view in views), default=0)


def precompile(
    worker: Worker, shapes: Shapes, names: Iterable[str], properties: Properties, rules: Rules,
    left: float,
) -> Recording | str:  # fmt: skip
    """Compiles a loaded submission's Triton kernels, which would otherwise happen on the device.

    Args:
        worker: Its process. Files remain in its folder, as after an import.
        shapes: Of all cases that are known.
        names: The cases that are judged, in order.
        properties: Of the device, which the process does not use.
        rules: Those that its calls are held to.
        left: The seconds that are left of the build time.

    Returns:
        What it launches, or why that cannot be said without its process.

    Raises:
        CandidateError: if it ends meanwhile, does not answer, or has a kernel that does not
            compile.
    """
    seconds = min(SECONDS, max(0.0, left))
    record = recording(rules) if rules != "open" else None
    orders = {case.name: case.orders for case in shapes.cases}
    cases = {
        name: orders[name] | {"construct": orders[name]["construct"] | {"record": record}}
        for name in names
        if name in orders
    }
    try:
        answer = worker.ask(
            "precompile",
            max(left, seconds + SLACK),
            cases=cases,
            properties=properties,
            seconds=seconds,
        )
    except TimedOut as late:
        raise TimedOut(late.seconds, "compiling its Triton kernels, which never ended,") from None
    match answer:
        case {"failure": failed}:
            raise Failed(Failure.read(failed))
        case {"cases": dict(found), "kernels": dict(kernels)}:
            return Recording(found, kernels)
        case {"unrecorded": str(why)}:
            return why[:LONGEST_REASON]
    raise Broken("it gave no recording")


def _shape_spec(problem: Problem, name: str, device: torch.device) -> ShapeSpec | None:
    try:
        case = Case(problem, name, device)
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
    return ShapeSpec(name=name, orders=orders)
