"""Every problem of ours is fit to be trained on: the lint finds nothing on its CPU case."""

import pytest

from kevin_env.judge.api import Options
from kevin_env.lint.report import Limits
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, list_problems

GENEROUS = Limits(cpu_seconds=2)
"""For machines that have other things to do: 0.2 s is meant for two cores that have nothing else.
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(each, id=each.id, marks=pytest.mark.xdist_group(each.id))
        for each in list_problems()
    ],
)
def test_nothing_is_found(pool: LocalPool, problem: Problem) -> None:
    report = pool.lint(problem, Options(device="cpu"), GENEROUS).result()
    assert [f"{finding.check}: {finding.message}" for finding in report.findings] == []
