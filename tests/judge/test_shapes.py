"""What a candidate is told of the cases before they are drawn is what they are like when they are."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import Options
from kevin_env.judge.handshake.memory import Image, image_size
from kevin_env.judge.inputs.cases import SECONDS, SLACK, ShapeSpecs, precompile, shape_specs
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lease import Lease
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.problem import Problem, load_problem

CPU = torch.device("cpu")
SOURCE = """
import torch
from torch import nn
N = 6
CASES = {"small": {"N": 4}, "other": {"N": 5}}
class Model(nn.Module):
    def __init__(self, n, table):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n))
        self.register_buffer("table", table.clone())
    def forward(self, x, options):
        return x * self.scale
def get_inputs():
    return [INPUTS, {"eps": 0.5, "mask": torch.randint(0, 2, (N,)).bool()}]
def get_init_inputs():
    return [N, torch.arange(N)]
"""


def problem(inputs: str) -> Problem:
    return Problem(
        id="x", name="x", source=SOURCE.replace("INPUTS", inputs), cases=("main", "small", "other")
    )


def forms(specs: list[dict[str, Any]]) -> list[Any]:
    return [(spec["dtype"], spec["shape"], spec["stride"]) for spec in specs]


@pytest.mark.parametrize(
    "inputs", ["torch.randn(N, 3)", "torch.randn(3, N).half().t()", "torch.randn(N, 4)[:, :3]"]
)
def test_shapes_types_strides_and_scalars_are_those_of_the_cases(inputs: str) -> None:
    of = problem(inputs)
    for name, spec in zip(of.cases, shape_specs(of), strict=True):
        case = Case(of, name, CPU)
        case.draw_weights(1)
        skeleton, tensors = case.draw_inputs("own", 1)
        told, stage = spec.orders["construct"], spec.orders["stage"]
        assert stage["inputs"] == skeleton
        assert forms(stage["specs"]) == forms(Image(tensors, CPU).specs)
        assert told["init"] == tree.take_apart(case.init_inputs)[0]
        assert forms(told["tensors"]) == [("int64", [len(case.init_inputs[1])], [1])]
        assert {key: forms([spec]) for key, spec in told["state"].items()} == {
            key: forms(Image([tensor], CPU).specs) for key, tensor in case.state().items()
        }
        assert told["parameters"] == ["scale"]


@pytest.mark.parametrize(
    "inputs", ["torch.randn(int(torch.randint(3, 9, ())), 3)", "torch.randn(N, 3).numpy()", "1 / 0"]
)
def test_a_case_that_needs_data_or_fails_is_left_out(inputs: str) -> None:
    assert shape_specs(problem(inputs)) == []


def test_a_call_is_as_large_as_its_inputs_and_outputs() -> None:
    of = problem("torch.randn(3, N)")
    case = Case(of, "main", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    outputs = tree.take_apart(case.answer(skeleton, tensors, 1))[1]
    assert shape_specs(of)[0].call == image_size(tensors) + image_size(outputs)
    looks = Problem(
        **{**of.model_dump(), "source": of.source.replace("x * self.scale", "x[x > 0]")}
    )
    assert shape_specs(looks)[0].call == image_size(tensors)


def test_every_case_of_a_problem_of_ours_is_there() -> None:
    of = load_problem("L1_40_LayerNorm")
    assert len(shape_specs(of)) == len(of.cases) > 2


@pytest.mark.parametrize(("left", "answer"), [(300.0, 300.0), (0.0, SLACK)])
def test_an_answer_may_take_what_is_left_for_building(left: float, answer: float) -> None:
    told: dict[str, tuple[float, float]] = {}
    ask = lambda order, timeout, seconds, **_: told.update({order: (timeout, seconds)})  # noqa: E731
    worker: Any = SimpleNamespace(ask=ask)
    precompile(worker, [], left)
    assert told["precompile"][0] == answer and told["precompile"][1] == min(left, SECONDS)


def test_constant_weights_get_their_noise_where_there_are_bytes() -> None:
    case = Case(problem("torch.randn(N, 3)"), "main", CPU)
    case.draw_weights(1)
    assert not (case.state()["scale"] == 1).all()


def test_none_is_made_while_others_are_timed(tmp_path: Path) -> None:
    lease, told = Lease("spec"), []
    bench: Any = SimpleNamespace(
        device=torch.device("cuda"), problems=SimpleNamespace(shapes=ShapeSpecs(lease))
    )
    worker: Any = SimpleNamespace(
        folder=tmp_path,
        path=str(tmp_path / "submission.py"),
        ask=lambda order, *_, **__: told.append(order),
    )
    run = SubmissionRun(
        bench, problem("torch.randn(N, 3)"), Options(device="cuda"), "00" * 16, worker
    )
    building = threading.Thread(target=run.build, args=("",))
    with lease.exclusive():
        building.start()
        building.join(0.5)
        assert told == ["load"]
    building.join()
    assert told == ["load", "precompile"]
