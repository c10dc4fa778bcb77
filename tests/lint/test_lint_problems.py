"""Every problem of ours is fit to be trained on: the lint finds nothing on its CPU case."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import pytest

from kevin_env.judge.api import Options
from kevin_env.judge.lint.report import Limits, LintReport
from kevin_env.judge.pool import LocalPool
from kevin_env.problem import Problem, list_problems

PROBLEMS = {problem.id: problem for problem in list_problems()}
GENEROUS = Limits(cpu_seconds=2)
"""For machines that have other things to do: 0.2 s is meant for two cores that have nothing else."""


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest, pool: LocalPool) -> Iterator[dict[str, Future[LintReport]]]:
    """What is found of the problems that are to be tested, by id: looked for beforehand by two judges."""
    pools: SimpleQueue[LocalPool] = SimpleQueue()

    def lint(problem: Problem) -> LintReport:
        free = pools.get()
        try:
            return free.lint(problem, Options(device="cpu"), GENEROUS).result()
        finally:
            pools.put(free)

    wanted = [item for item in request.session.items if item.originalname == test_nothing_is_found.__name__]  # type: ignore[attr-defined]
    with LocalPool() as another, ThreadPoolExecutor(2) as threads:
        pools.put(pool)
        pools.put(another)
        problems = [item.callspec.params["problem"] for item in wanted]  # type: ignore[attr-defined]
        yield {problem.id: threads.submit(lint, problem) for problem in problems}
        threads.shutdown(cancel_futures=True)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_nothing_is_found(reports: dict[str, Future[LintReport]], problem: Problem) -> None:
    report = reports[problem.id].result()
    assert [f"{finding.check}: {finding.message}" for finding in report.findings] == []
