"""Failures that other processes can cause become verdicts only if they happen alone."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from judges import ScriptedClock

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.job import Cancellation, Cancelled
from kevin_env.judge.judge import Judge
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.workers.baselines import OwnProcessKilled
from kevin_env.judge.workers.memory_watch import DeviceMemory
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct
from kevin_env.problem import Problem, load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
SHORT = """
import pathlib
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        if x.dtype == torch.float64 and (left := int(LEFT.read_text())):
            LEFT.write_text(str(left - 1))
            raise torch.OutOfMemoryError("full")
        return x + 1000 - 1000
def get_inputs():
    return [torch.rand(64, 64)]
def get_init_inputs():
    return []
"""
"""Lacks memory for float64, in which it is far more exact, so many times."""
RIGHT = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""
HUNGRY = f"kept = bytearray(b'x') * (1 << 30)\n{RIGHT}"
FAULTY = f"import ctypes\nctypes.string_at(0)\n{RIGHT}"
FULL, FAULTY_CALL = (
    RIGHT.replace("return", f"raise {error}; return")
    for error in ("torch.OutOfMemoryError('full')", "ValueError('no')")
)
SLOW = RIGHT.replace("return", "__import__('time').sleep(0.5); return")
LIMIT = 600 << 20


@pytest.fixture(scope="module")
def short_of_memory() -> Iterator[None]:
    """Judges that start find no free memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kevin_env.judge.bench.host_memory", lambda: 0)
        patch.setattr("kevin_env.judge.bench.SUBMISSION", LIMIT)
        yield


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge], short_of_memory: None) -> Judge:
    """Screens for real and measures nothing."""
    timed = Correct(kind="timed", message="")
    return a_judge(clock=ScriptedClock({"cpu": timed, "main": timed}))


@pytest.fixture(scope="module")
def timing_judge(a_judge: Callable[..., Judge], short_of_memory: None) -> Judge:
    return a_judge()


def judged(judge: Judge, code: str, problem: Problem = SOFTMAX, **more) -> tuple[Judgement, int]:
    """The judgement, and the number of attempts."""
    stages: list[str] = []
    options = Options(device="cpu", inputs="shipped", **more)
    return judge.judge(problem, Submission(code=code), options, stages.append), stages.count(
        "build"
    )


def test_a_full_machine_leaves_a_candidate_its_least(judge: Judge) -> None:
    assert judge.bench.memory == LIMIT
    judgement, runs = judged(judge, RIGHT)
    assert (judgement.outcome.category, runs) == ("correct", 1)


def test_a_limit_is_the_same_for_all_so_that_exceeding_it_is_a_verdict(
    judge: Judge, monkeypatch
) -> None:
    monkeypatch.setattr(judge.bench.lease, "idle", lambda: False)
    judgement, runs = judged(judge, HUNGRY)
    assert "more than 600 MiB of memory" in judgement.outcome.message and runs == 1


@pytest.mark.parametrize(("code", "runs"), [(FULL, 2), (FAULTY, 1), (FAULTY_CALL, 1)])
def test_beside_others_a_lack_of_memory_is_a_verdict_only_alone(
    judge: Judge, monkeypatch, code: str, runs: int
) -> None:
    monkeypatch.setattr(judge.bench.lease, "idle", lambda: False)
    judgement, found = judged(judge, code)
    assert judgement.outcome.category in ("compile", "runtime") and found == runs


@pytest.mark.parametrize(
    ("code", "short", "runs", "blamed"),
    [
        (FULL, [True, True], 2, False),
        (FULL, [True, False], 2, True),
        (FULL, [False], 1, True),
        (FAULTY_CALL, [], 1, True),
    ],
    ids=["still short alone", "not alone", "never short", "another end"],
)
def test_memory_that_others_hold_is_not_the_submissions_fault(
    judge: Judge, monkeypatch, code: str, short: list[bool], runs: int, blamed: bool
) -> None:
    """As on a device that was full before the judge began.

    It is queried while the submission still holds its memory.
    """
    left, built = iter(short), list[str]()

    def lacks_fair_share(run: SubmissionRun) -> bool:
        assert run.worker.waiting
        return next(left)

    monkeypatch.setattr("kevin_env.judge.crowding.lacks_fair_share", lacks_fair_share)
    monkeypatch.setattr(judge.bench.lease, "idle", lambda: True)
    options = Options(device="cpu", inputs="shipped")
    if blamed:
        assert (
            judge.judge(SOFTMAX, Submission(code=code), options, built.append).outcome.category
            == "runtime"
        )
    else:
        with pytest.raises(JudgeError, match="lacked device memory that others hold"):
            judge.judge(SOFTMAX, Submission(code=code), options, built.append)
    assert built.count("build") == runs and not list(left)


def test_too_much_device_memory_is_a_verdict(judge: Judge, monkeypatch) -> None:
    """A table stands where the driver does."""
    stages: list[str] = []

    def usage() -> dict[int, int]:
        return dict.fromkeys(descendants(os.getpid()), 1 << 40 if stages[-1:] == ["verify"] else 0)

    memory = DeviceMemory(usage, 1536 << 20, lambda: False)
    monkeypatch.setattr(judge.bench.candidates, "_memory", memory)
    monkeypatch.setattr(judge.bench.lease, "idle", lambda: False)
    code = Submission(code=SLOW.replace("0.5", "50"))
    try:
        outcome = judge.judge(
            SOFTMAX, code, Options(device="cpu", inputs="shipped"), stages.append
        ).outcome
    finally:
        memory.close()
    assert outcome.kind == "killed" and "1536 MiB of device memory" in outcome.message
    assert stages.count("build") == 1


def test_calls_have_a_limit_for_their_total_time(timing_judge: Judge, monkeypatch) -> None:
    monkeypatch.setattr("kevin_env.judge.submission_run.ALL_CALLS", 1)
    judgement, _ = judged(timing_judge, SLOW, call_timeout=2.0)
    assert (judgement.outcome.category, judgement.outcome.kind) == ("runtime", "timeout")
    assert (
        judgement.outcome.message
        == "all calls of ModelNew together took longer than 2 s (stopped at line 5)"
    )
    monkeypatch.setattr("kevin_env.judge.submission_run.ALL_CALLS", 100)
    assert (
        judged(timing_judge, SLOW.replace("0.5", "0.01"), call_timeout=5.0)[0].outcome.category
        == "correct"
    )


def test_a_submission_that_kills_itself_is_judged_again_on_other_inputs(judge: Judge) -> None:
    """A recorded turn that is judged again uses these inputs."""
    telling = RIGHT.replace("return", "print(x.flatten()[:4].tolist(), flush=True); return")
    ending = telling.replace(
        "return", "__import__('os').kill(__import__('os').getpid(), 9); return"
    )
    again, runs = judged(judge, ending, secret="ab" * 16)
    assert (again.outcome.kind, runs) == ("signal", 2) and again.secret != "ab" * 16
    once, recorded = (
        judged(judge, telling, secret=secret)[0] for secret in ("ab" * 16, again.secret)
    )
    firsts = [judgement.log.splitlines()[0] for judgement in (once, again, recorded)]
    assert firsts[0] != firsts[1] == firsts[2]


def test_for_a_known_problem_only_inputs_that_are_verified_are_drawn(
    judge: Judge, monkeypatch
) -> None:
    judged(judge, RIGHT)
    draw, checked = Case.draw_inputs, SubmissionRun.checked
    drawn, verified = list[str](), list[str]()

    def counted(case: Case, distribution: str, seed: int) -> Any:
        if case.device.type != "meta":
            drawn.append(distribution)
        return draw(case, distribution, seed)

    monkeypatch.setattr(Case, "draw_inputs", counted)
    monkeypatch.setattr(
        SubmissionRun, "checked", lambda *call: (verified.append(call[1]), checked(*call))[1]
    )
    judged(judge, RIGHT)
    assert drawn == verified != []


@pytest.mark.parametrize("failures", [1, 2])
def test_the_judge_lacks_memory_only_when_it_does_so_alone(
    judge: Judge, monkeypatch, failures: int
) -> None:
    expect, left = SubmissionRun.expect, [failures]

    def short_of_memory(run: SubmissionRun, *given):
        if left[0]:
            left[0] -= 1
            raise torch.OutOfMemoryError("full")
        return expect(run, *given)

    monkeypatch.setattr(SubmissionRun, "expect", short_of_memory)
    if failures == 2:
        with pytest.raises(torch.OutOfMemoryError):
            judged(judge, RIGHT)
        return
    judgement, runs = judged(judge, RIGHT)
    assert (judgement.outcome.category, runs) == ("correct", 2)


def test_a_submission_that_holds_the_judges_memory_fails(judge: Judge, monkeypatch) -> None:
    def full(run: SubmissionRun, *given):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(SubmissionRun, "expect", full)
    monkeypatch.setattr(judge.bench, "device_memory", 300)
    monkeypatch.setattr(judge.bench.candidates, "held", lambda worker: 101)
    outcome = judged(judge, RIGHT)[0].outcome
    assert (outcome.category, outcome.kind) == ("runtime", "out_of_memory")
    monkeypatch.setattr(judge.bench.candidates, "held", lambda worker: 99)
    with pytest.raises(torch.OutOfMemoryError):
        judged(judge, RIGHT)


@pytest.mark.parametrize(("lacking", "ends"), [("torch.OutOfMemoryError", 2), ("ValueError", None)])
def test_if_a_baseline_lacks_memory_the_submission_is_judged_again_alone(
    timing_judge: Judge, monkeypatch, lacking: str, ends: int | None
) -> None:
    """Any other failure of a process of the judge is raised at once."""
    runs: list[str] = []

    def failing_at_first(problem: Problem, case: str) -> str:
        runs.append(case)
        if len(runs) > 1:
            return source_of(problem, case)
        failing = f"class Model(Model):\n    def forward(self, x):\n        raise {lacking}"
        return f"{source_of(problem, case)}\n\n{failing}"

    monkeypatch.setattr("kevin_env.judge.timing.session.source_of", failing_at_first)
    monkeypatch.setattr(timing_judge.bench.baselines, "_taken", lambda key: None)
    if ends is None:
        with pytest.raises(JudgeError, match="a process of the judge's own failed: Failed"):
            judged(timing_judge, RIGHT)
        return
    judgement, found = judged(timing_judge, RIGHT)
    assert (judgement.outcome.category, found) == ("correct", ends)
    assert len(runs) >= ends


@pytest.mark.parametrize(
    ("lacks", "answer", "runs"),
    [(0, "x.clone()", 1), (1, "x.clone()", 2), (1000, "x + 1000 - 1000", 2)],
)
def test_the_oracle_lacks_memory_only_if_it_does_so_alone(
    judge: Judge, tmp_path: Path, lacks: int, answer: str, runs: int
) -> None:
    """Without an oracle an exact answer is off by more than is allowed."""
    left = tmp_path / "left"
    left.write_text(str(lacks))
    problem = Problem(
        id="short", name="short", source=f"{SHORT}LEFT = pathlib.Path({str(left)!r})\n"
    )
    judgement, found = judged(judge, RIGHT.replace("torch.softmax(x, dim=1)", answer), problem)
    assert (judgement.outcome.category, found) == ("correct", runs), judgement.outcome


@pytest.mark.parametrize("failures", [1, 2])
def test_a_candidate_that_does_not_start_is_tried_again_alone(
    judge: Judge, monkeypatch, failures: int
) -> None:
    take, others = judge.bench.candidates.take, list[bool]()

    def full(context: bool = True) -> Worker:
        others.append(judge._on_device.acquire(blocking=False))
        if others[-1]:
            judge._on_device.release()
        if len(others) <= failures:
            raise JudgeError("no room for a context")
        return take(context)

    monkeypatch.setattr(judge.bench.candidates, "take", full)
    if failures == 1:
        assert judged(judge, RIGHT)[0].outcome.category == "correct"
    else:
        with pytest.raises(JudgeError, match="no room for a context"):
            judged(judge, RIGHT)
    assert others == [True, False]


def test_a_context_that_is_not_created_is_no_verdict(judge: Judge, monkeypatch) -> None:
    take, contexts = judge.bench.candidates.take, list[bool]()

    def without(context: bool = True) -> Worker:
        worker = take(context)
        worker.has_context = context  # there is no GPU here, so creating one fails
        contexts.append(context)
        return worker

    monkeypatch.setattr(judge.bench.candidates, "take", without)
    judgement, attempts = judged(judge, RIGHT)
    assert (judgement.outcome.category, attempts, contexts) == ("correct", 2, [False, True])


@pytest.mark.parametrize("stage", ["queue", "build", "verify", "time"])
def test_a_cancelled_judgement_ends_and_is_not_repeated(
    timing_judge: Judge, monkeypatch, stage: str
) -> None:
    monkeypatch.setattr(
        timing_judge.bench.lease, "idle", lambda: False
    )  # so that its end might be others' doing
    cancellation, stages = Cancellation(), list[str]()

    def on_stage(begun: str) -> None:
        stages.append(begun)
        if begun == stage:
            cancellation.cancel()

    with pytest.raises(Cancelled):
        timing_judge.judge(
            SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), on_stage, cancellation
        )
    assert stages.count("build") == (stage != "queue") and stages[-1] == "queue"
    assert judged(timing_judge, RIGHT)[0].outcome.category == "correct"


def test_what_is_timed_when_a_process_of_the_judge_is_killed_is_judged_again(
    a_judge: Callable[..., Judge],
) -> None:
    timed, killed = Correct(kind="timed", message=""), [OwnProcessKilled("killed")]

    def clock(*_: object) -> Correct:
        if killed:
            raise killed.pop()
        return timed

    judgement, runs = judged(a_judge(clock=clock), RIGHT)
    assert judgement.outcome == timed and runs == 2 and not killed
