"""A judge in this process in the place of a pool: a test can change what it does."""

from concurrent.futures import Future
from typing import TypeVar

from kevin_env.judge.api import Facts, Judgement, OnStage, Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.problem import Problem

T = TypeVar("T")


class InThisProcess:
    """A pool of one judge, which judges in the thread that asks. Close the judge itself."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        return done(
            self._judge.bench.facts.of(problem.judged_as(options)).told(self._judge.info, options)
        )

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        return done(self._judge.judge(problem, submission, options, on_stage or (lambda _: None)))

    def close(self) -> None:
        pass


def done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future
