"""Cases, their input sets and their shapes."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import PACES, DeviceInfo, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.cases import (
    CPU_BYTES,
    open_cases,
    plan,
    timed_case,
    usable_distributions,
)
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS
from kevin_env.judge.inputs.facts import FactStore
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lane import Lane
from kevin_env.judge.precompile import find_shapes
from kevin_env.judge.trial import Trial
from kevin_env.problem import Problem, ProblemError

PACE = PACES["cpu"]


CPU = torch.device("cpu")


ALL = list(DISTRIBUTIONS)


SOURCE = """
import torch
n = 8
CASES = {"cpu": {"n": 4}, "huge": {"n": HUGE}, "odd": {"n": 3}}
class Model(torch.nn.Module):
    def forward(self, x):
        return BODY
def get_inputs():
    return [DRAW]
def get_init_inputs():
    return []
"""


def problem(
    body: str = "x",
    cases: tuple[str, ...] = ("main", "cpu", "huge", "odd"),
    draw: str = "torch.rand(n)",
) -> Problem:
    source = (
        SOURCE.replace("HUGE", str(CPU_BYTES // 4 + 1)).replace("BODY", body).replace("DRAW", draw)
    )
    return Problem(id="p", source=source, name="p", cases=cases)


def test_the_timed_case_meets_every_distribution_and_at_least_five_sets() -> None:
    for distributions in (ALL, ["own"], ["own", "wide"]):
        for i in range(50):
            planned = plan(distributions, True, f"{i:032x}", "main", PACE)
            assert set(planned) == set(distributions) and len(planned) >= PACE.sets == 5


def test_a_gpu_screens_few_full_size_sets_but_where_there_is_no_other_case() -> None:
    pace = PACES["cuda"]
    assert len(plan(ALL, True, "ab", "main", pace)) == 2 and set(
        plan(ALL, True, "ab", "main", pace, True)
    ) == set(ALL)
    found = [case.name for case in open_cases(problem(), torch.device("meta"))]
    assert found == ["huge", "odd", "main"]


def test_other_cases_meet_each_distribution_once() -> None:
    for i in range(50):
        planned = plan(ALL, False, f"{i:032x}", "odd", PACE)
        assert len(set(planned)) == len(planned) == PACE.sets_of_others == 5
    assert plan(["own"], False, "ab", "odd", PACE) == ["own"]


def test_the_order_follows_from_the_secret_and_the_case_alone() -> None:
    secrets = [f"{i:032x}" for i in range(40)]
    assert len({tuple(plan(ALL, True, secret, "main", PACE)) for secret in secrets}) > 20
    assert plan(ALL, True, secrets[0], "main", PACE) == plan(ALL, True, secrets[0], "main", PACE)
    assert any(plan(ALL, True, s, "main", PACE) != plan(ALL, True, s, "cpu", PACE) for s in secrets)
    assert {plan(ALL, True, secret, "main", PACE)[0] for secret in secrets} == set(ALL)


def test_the_timed_case_comes_last_and_what_is_large_is_left_out_on_a_cpu() -> None:
    assert [case.name for case in open_cases(problem(), CPU)] == ["odd", "cpu"]
    assert [case.name for case in open_cases(problem(cases=("main", "odd")), CPU)] == [
        "odd",
        "main",
    ]
    assert timed_case(problem(), torch.device("cuda")) == "main"


@pytest.mark.parametrize(
    "draw", ["torch.rand(n) + (torch.rand(1).item() > 2)", "torch.rand(int(torch.tensor(n)))"]
)
def test_a_case_whose_shapes_need_data_is_judged_on_a_cpu_as_well(draw: str) -> None:
    assert [case.name for case in open_cases(problem(draw=draw), CPU)] == ["odd", "cpu"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("assigned", ["n, m = 8, 8", "size = 8"])
def test_a_case_that_overrides_what_is_not_assigned_is_an_error_everywhere(
    device: str, assigned: str
) -> None:
    source = problem(draw="torch.rand(8)").source.replace("n = 8", assigned)
    given = Problem(id="p", source=source, name="p", cases=("main", "odd"))
    with pytest.raises(ProblemError, match="overrides n: assign each in a line of its own"):
        list(open_cases(given, torch.device(device)))


def test_inputs_that_are_too_large_for_a_cpu_are_an_error_before_they_are_drawn() -> None:
    with pytest.raises(ProblemError, match=r"inputs of 4398.0 GB are too large for a CPU with"):
        next(open_cases(problem(cases=("main",), draw="torch.rand(1 << 40)"), CPU))


def test_a_distribution_on_which_the_reference_is_not_finite_is_not_used() -> None:
    case = Case(problem("torch.exp(x)", draw="torch.randn(n)"), "main", CPU)
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ["own", "signed", "offset", "negative"]
    case = Case(problem("x.to(torch.float8_e5m2)"), "main", CPU)
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ["own", "signed", "wide", "offset"]


def test_infinities_are_part_of_an_output_where_float64_arithmetic_has_them() -> None:
    def usable(body: str) -> list[str]:
        case = Case(problem(body, draw="torch.randn(n)"), "main", CPU)
        case.draw_weights(1)
        return usable_distributions(case, 1)

    assert usable("torch.where(x > -50, x, -torch.inf)") == ["own", "signed", "wide", "offset"]
    assert usable("torch.where(x > 9, x * 1e38, x)") == ["own", "signed", "offset", "negative"]
    with pytest.raises(ProblemError, match="infinite where float64 arithmetic is not"):
        usable("(x + 9) * 1e38")
    with pytest.raises(ProblemError, match="is NaN on its own inputs"):
        usable("torch.where(x > 0, x, -torch.inf) - torch.where(x > 0, x, -torch.inf)")


def test_a_distribution_on_which_the_reference_fails_is_not_used() -> None:
    case = Case(
        problem("torch.linalg.cholesky((20 - x).diag())", draw="torch.randn(n)"), "main", CPU
    )
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ["own", "signed", "offset", "negative"]


def test_a_reference_that_is_not_finite_on_its_own_inputs_is_a_problem_error() -> None:
    case = Case(problem("x / 0"), "main", CPU)
    case.draw_weights(1)
    try:
        usable_distributions(case, 1)
    except ProblemError as error:
        assert "infinite everywhere" in str(error)
    else:
        raise AssertionError("it was accepted")


SHAPED = """
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


def shaped(inputs: str) -> Problem:
    return Problem(
        id="x", name="x", source=SHAPED.replace("INPUTS", inputs), cases=("main", "small", "other")
    )


def forms(specs: list[dict[str, Any]]) -> list[Any]:
    return [(spec["dtype"], spec["shape"], spec["stride"]) for spec in specs]


@pytest.mark.parametrize(
    "inputs", ["torch.randn(N, 3)", "torch.randn(3, N).half().t()", "torch.randn(N, 4)[:, :3]"]
)
def test_shapes_types_strides_and_scalars_are_those_of_the_cases(inputs: str) -> None:
    of = shaped(inputs)
    for name, spec in zip(of.cases, find_shapes(of).cases, strict=True):
        case = Case(of, name, CPU)
        case.draw_weights(1)
        skeleton, tensors = case.draw_inputs("own", 1)
        told, stage = spec.orders["construct"], spec.orders["stage"]
        assert stage["inputs"] == skeleton
        assert forms(stage["specs"]) == forms(Image(tensors, CPU).specs)
        (_, table), _ = case.init_inputs
        assert told["init"] == tree.flatten([[len(table), table], {}])[0]
        assert forms(told["tensors"]) == [("int64", [len(table)], [1])]
        assert {key: forms([spec]) for key, spec in told["state"].items()} == {
            key: forms(Image([tensor], CPU).specs) for key, tensor in case.state().items()
        }
        assert told["parameters"] == ["scale"]


@pytest.mark.parametrize(
    "inputs", ["torch.randn(int(torch.randint(3, 9, ())), 3)", "torch.randn(N, 3).numpy()", "1 / 0"]
)
def test_a_case_that_needs_data_or_fails_is_left_out(inputs: str) -> None:
    assert find_shapes(shaped(inputs)).cases == ()


def test_none_is_made_while_others_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lane, facts, told = Lane("shapes"), FactStore(CPU, DeviceInfo(device="cpu", name="CPU")), []
    bench: Any = SimpleNamespace(
        device=torch.device("cuda"),
        facts=facts,
        lane=lane,
        shapes_of=lambda problem: Bench.shapes_of(bench, problem),
        properties={},
        facts_of=lambda _: SimpleNamespace(cases=()),
    )
    worker: Any = SimpleNamespace(
        path=str(tmp_path / "submission.py"),
        ask=lambda order, *_, **__: told.append(order) or {"unrecorded": "-"},
    )
    trial = Trial(bench, shaped("torch.randn(N, 3)"), Options(device="cuda"), "00" * 16, worker)
    building = threading.Thread(target=trial.build, args=("",))
    with lane.entered():
        building.start()
        while not len(lane.line):
            assert building.is_alive()
        assert not told
    building.join()
    assert told == ["load", "precompile"]
