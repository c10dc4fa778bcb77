"""Submissions that share a device: one that is to be timed waits for one call of the others."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from leasing import taken

from kevin_env.judge import Options, Submission
from kevin_env.judge.capacity import GIB
from kevin_env.judge.compare.values import Tolerance
from kevin_env.judge.judge import Judge
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.measure import measure
from kevin_env.judge.timing.session import TimingSession
from kevin_env.judge.verdict import may_be_environmental
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct, RuntimeFailure
from kevin_env.problem import load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = Submission(
    code="""
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""
)
OPTIONS = Options(device="cpu")
SECONDS = 60


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_others_are_timed_between_two_calls_of_a_stopped_submission(
    judge: Judge, monkeypatch
) -> None:
    stages: list[str] = []
    seen: list[tuple[int, set[str]]] = []
    take, taken, waiting = judge.bench.candidates.take, [], []
    monkeypatch.setattr(
        judge.bench.candidates, "take", lambda context=True: taken.append(take()) or taken[-1]
    )

    def other() -> None:
        with judge.bench.lease.exclusive():
            seen.append((stages.count("verify"), {state(pid) for pid in descendants(taken[0].pid)}))

    def watch(stage: str) -> None:
        stages.append(stage)
        if stage == "verify" and not waiting:
            waiting.append(threading.Thread(target=other))
            waiting[0].start()
            deadline = time.monotonic() + SECONDS
            while not judge.bench.lease.wanted() and time.monotonic() < deadline:
                time.sleep(0.001)

    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, watch).outcome.category == "correct"
    waiting[0].join()
    assert seen == [(1, {"T"})] and stages.count("verify") > 1


def test_on_a_cpu_a_judged_submission_is_stopped_until_it_is_ended(
    judge: Judge, monkeypatch
) -> None:
    close, seen = Worker.close, []

    def closed(worker: Worker) -> None:
        seen.append(
            (
                {state(pid) for pid in descendants(worker.pid)},
                taken(judge.bench.lease, "exclusive", 0.2),
            )
        )
        close(worker)

    take, submissions = judge.bench.candidates.take, []
    monkeypatch.setattr(
        judge.bench.candidates,
        "take",
        lambda context=True: submissions.append(take()) or submissions[-1],
    )
    monkeypatch.setattr(
        Worker, "close", lambda worker: closed(worker) if worker in submissions else close(worker)
    )
    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, lambda _: None).outcome.category == "correct"
    assert seen == [({"T"}, False)]


def test_a_submission_that_hangs_is_ended_before_others_get_the_device(
    judge: Judge, monkeypatch
) -> None:
    retire, left, stages = judge.bench.candidates.retire, [], []
    monkeypatch.setattr(
        judge.bench.candidates,
        "retire",
        lambda worker: (left.append(list(descendants(worker.pid))), retire(worker)),
    )
    # in a screened call, and in a timed one, after which it is not judged again
    for calls in (1, 4):
        hangs = RIGHT.code.replace(
            "return",
            f"self.n = getattr(self, 'n', 0) + 1; {calls} <= self.n and time.sleep(99); return",
        )
        options = Options(device="cpu", call_timeout=1.0)
        outcome = judge.judge(
            SOFTMAX, Submission(code=f"import time\n{hangs}"), options, stages.append
        ).outcome
        assert (outcome.category, outcome.kind) == ("runtime", "timeout")
    assert left == [[], []] and stages.count("build") == 2 and "time" in stages


def test_the_device_is_exclusive_while_a_submission_is_timed(judge: Judge, monkeypatch) -> None:
    others: list[bool] = []

    def timed(*given: Any) -> Correct:
        others.append(taken(judge.bench.lease, "shared", 0.2))
        try:
            return measure(*given)
        finally:
            others.append(taken(judge.bench.lease, "shared", 0.2))

    monkeypatch.setattr("kevin_env.judge.judge.measure", timed)
    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, lambda _: None).outcome.category == "correct"
    assert others and not any(others)  # who is doubted is timed again


def test_a_submission_judged_alone_is_screened_with_the_exclusive_lease(
    judge: Judge, monkeypatch
) -> None:
    checked, others = SubmissionRun.checked, list[bool]()
    monkeypatch.setattr("kevin_env.judge.judge.may_be_environmental", lambda *given: True)
    stages: list[str] = []

    def watched(run: SubmissionRun, distribution: str) -> Any:
        if stages.count("build") == 2:
            others.append(taken(judge.bench.lease, "shared", 0.1))
        return checked(run, distribution)

    monkeypatch.setattr(SubmissionRun, "checked", watched)
    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, stages.append).outcome.category == "correct"
    assert stages.count("build") == 2 and others and not any(others)


@pytest.mark.parametrize("count", [2, 3])
def test_a_large_problem_takes_several_places(judge: Judge, monkeypatch, count: int) -> None:
    places, left, cleared = threading.Semaphore(3), list[int](), list[tuple[int, float]]()
    capacity = replace(judge.bench.capacity, on_device=3, place=GIB)
    monkeypatch.setattr(judge, "_on_device", places)
    monkeypatch.setattr(judge.bench, "capacity", capacity)
    monkeypatch.setattr(judge.bench, "needed", lambda problem: count * GIB)
    monkeypatch.setattr(
        judge.bench, "clear", lambda needed: cleared.append((places._value, needed))
    )

    def watch(stage: str) -> None:
        if stage == "verify":
            left.append(places._value)

    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, watch).outcome.category == "correct"
    assert set(left) == {3 - count} and places._value == 3
    assert cleared == ([(0, 3 * GIB)] if count == 3 else [])


@pytest.mark.parametrize(
    ("outcome", "given", "doubted"),
    [
        (RuntimeFailure(kind="out_of_memory", message=""), (False, True), True),
        (RuntimeFailure(kind="out_of_memory", message=""), (False, False), False),
        (RuntimeFailure(kind="timeout", message=""), (False, True), False),
        (RuntimeFailure(kind="exception", message=""), (False, True), False),
        (RuntimeFailure(kind="killed", message=""), (True, False), True),
        (Correct(kind="timed", message=""), (True, True), False),  # it ended after its verdict
    ],
)
def test_only_some_failures_may_be_environmental(
    outcome, given: tuple[bool, bool], doubted: bool
) -> None:
    assert may_be_environmental(outcome, *given) is doubted


def test_baselines_resume_after_a_submission_that_ended_before_timing(
    judge: Judge, monkeypatch
) -> None:
    prepare = TimingSession.prepare

    def killed(run: SubmissionRun, *given: Any) -> TimingSession:
        session = prepare(run, *given)
        for pid in descendants(run.worker.pid):
            os.kill(pid, signal.SIGKILL)
        while run.worker.waiting:
            time.sleep(0.001)
        return session

    with monkeypatch.context() as patch:
        patch.setattr(TimingSession, "prepare", killed)
        assert judge.judge(SOFTMAX, RIGHT, OPTIONS, lambda _: None).outcome.category == "runtime"
    free = [worker for _, worker in judge.bench.baselines._free]
    assert free and not any(state(pid) == "T" for worker in free for pid in descendants(worker.pid))
    assert judge.judge(SOFTMAX, RIGHT, OPTIONS, lambda _: None).outcome.category == "correct"


def test_tolerances_of_one_submission_serve_the_next(a_judge: Callable[..., Judge]) -> None:
    judge = a_judge()
    wrong = Submission(code=RIGHT.code.replace("dim=1)", "dim=1) * 1.01"))

    def category(submission: Submission) -> str:
        options = Options(device="cpu", inputs="shipped")  # of one distribution
        return judge.judge(SOFTMAX, submission, options, lambda stage: None).outcome.category

    assert (category(RIGHT), category(wrong)) == ("correct", "correctness")
    known = judge.bench.problems.facts.tolerances(SOFTMAX, "shipped")
    known |= dict.fromkeys(known, Tolerance(math.inf, math.inf, True))
    assert category(wrong) == "correct"
