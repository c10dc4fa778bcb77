import torch

from kevin_env.judge.api import PACES
from kevin_env.judge.inputs.cases import (
    CPU_BYTES,
    open_cases,
    plan,
    timed_case,
    usable_distributions,
)
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS
from kevin_env.judge.inputs.reference import Case
from kevin_env.problem import Problem, ProblemError, load_problem

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
        assert len(set(planned)) == len(planned) == PACE.sets_of_others == 4
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


def test_a_distribution_on_which_the_reference_is_not_finite_is_not_used() -> None:
    case = Case(problem("torch.exp(x)", draw="torch.randn(n)"), "main", CPU)
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ["own", "signed", "offset"]
    case = Case(problem("x.to(torch.float8_e5m2)"), "main", CPU)
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ALL


def test_a_distribution_on_which_the_reference_fails_is_not_used() -> None:
    case = Case(
        problem("torch.linalg.cholesky((20 - x).diag())", draw="torch.randn(n)"), "main", CPU
    )
    case.draw_weights(1)
    assert usable_distributions(case, 1) == ["own", "signed", "offset"]


def test_a_reference_that_is_not_finite_on_its_own_inputs_is_a_problem_error() -> None:
    case = Case(problem("x / 0"), "main", CPU)
    case.draw_weights(1)
    try:
        usable_distributions(case, 1)
    except ProblemError as error:
        assert "not finite on its own inputs" in str(error)
    else:
        raise AssertionError("it was accepted")


def test_our_own_problem_is_timed_with_its_cpu_case() -> None:
    assert [case.name for case in open_cases(load_problem("L1_26_GELU_"), CPU)][-1] == "cpu"
