"""Timed answers are compared after the device was given back, each of them, and as they were when
they were given.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.handshake.claims import CallClaim
from kevin_env.judge.handshake.handshake import Answer, Drawn
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.judge import Judge
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.session import UnverifiedAnswers, WrongAnswer
from kevin_env.outcome import Incorrect
from kevin_env.problem import load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = """
import os, torch
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        right = torch.softmax(x, dim=1)
        return right
"""
PACE = Pace(pairs=(2, 2), seconds=60.0, warm_ups=1, sets=2, sets_of_others=1)
SCREENED = 5
"""More calls than are screened, and fewer than are made in all."""
WRONG = RIGHT.replace("return right", f"return right * (1 + (self.calls == {SCREENED}))")
GONE = [
    RIGHT.replace("return right", f"return right * (1 + (self.calls == {n}))").replace(
        "right =", f"os._exit(5) if self.calls == {n + 1} else None; right ="
    )
    for n in range(SCREENED, SCREENED + 3)
]
"""WrongAnswer once, and gone in the next call."""
BUDGETS = {"cuda": 0.25, "cpu": 0.05}, {"cuda": 0.0, "cpu": 0.0}


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(PACE)


def judged(judge: Judge, code: str) -> tuple[Judgement, list[str]]:
    stages: list[str] = []
    judgement = judge.judge(SOFTMAX, Submission(code=code), Options(device="cpu"), stages.append)
    return judgement, stages


@pytest.mark.parametrize("share", BUDGETS)
@pytest.mark.parametrize("code", [WRONG, *GONE])
def test_a_wrong_timed_answer_is_told_whenever_it_is_compared(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, share: dict[str, float], code: str
) -> None:
    monkeypatch.setattr("kevin_env.judge.timing.session.WAITING_SHARE", share)
    judgement, stages = judged(judge, code)
    outcome = judgement.outcome
    assert isinstance(outcome, Incorrect) and (outcome.kind, judgement.flags) == ("values", ())
    assert outcome.input_set and outcome.input_set.startswith("cpu/") and outcome.differences
    if code == WRONG:
        assert ("verify" in stages[stages.index("time") :]) is (share is BUDGETS[0])


@pytest.mark.parametrize("share", BUDGETS)
def test_every_timed_answer_is_compared_before_anything_is_told(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, share: dict[str, float]
) -> None:
    given, compared, alone = [], [], []
    call, check = SubmissionRun.call, SubmissionRun.check

    def ran(run: SubmissionRun, drawn: Drawn) -> Answer:
        given.append(call(run, drawn))
        return given[-1]

    def checked(run: SubmissionRun, answer: Answer, drawn: Drawn) -> Incorrect | None:
        compared.append(answer)
        alone.append(judge.bench.timing.locked())
        return check(run, answer, drawn)

    monkeypatch.setattr("kevin_env.judge.timing.session.WAITING_SHARE", share)
    monkeypatch.setattr(SubmissionRun, "call", ran)
    monkeypatch.setattr(SubmissionRun, "check", checked)
    assert judged(judge, RIGHT)[0].outcome.category == "correct"
    assert len(given) > 8 and [id(each) for each in compared] == [id(each) for each in given]
    assert any(alone) is (share is BUDGETS[1])


@pytest.mark.parametrize(("stay", "often"), [(0.0, True), (60.0, False)])
def test_others_are_timed_while_answers_are_compared(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, stay: float, often: bool
) -> None:
    monkeypatch.setattr("kevin_env.judge.timing.session.STAY", stay)
    monkeypatch.setattr(judge.bench.lease, "wanted", lambda: True)
    _, stages = judged(judge, RIGHT)
    later = [stage for stage in stages[stages.index("time") :] if stage in ("queue", "verify")]
    assert later[:2] == ["queue", "verify"] and (later.count("verify") > 4) is often
    assert all("queue" in pair for pair in itertools.pairwise(later))


@dataclass
class Checking:
    """Stands where a run does; `wrong` is the input set that it finds a wrong answer on."""

    wrong: str = ""
    seen: list[str] = field(default_factory=list)

    def check(self, answer: Answer, drawn: Drawn) -> Incorrect | None:
        self.seen.append(drawn.input_set)
        return (
            Incorrect(kind="values", message="", input_set=self.wrong)
            if self.seen[-1] == self.wrong
            else None
        )


def drawn(name: str) -> Drawn:
    return Drawn({"t": 0}, Image([torch.zeros(128)], torch.device("cpu")), 0, name)


def answer() -> Answer:
    return Answer(CallClaim(), [], [], 1.0)


def test_what_waits_longest_is_compared_at_once_where_too_much_waits() -> None:
    run, size = Checking(), drawn("").image.bytes.numel()
    unverified = UnverifiedAnswers(run, budget=2 * size)  # type: ignore[arg-type]
    for name in "ab":
        unverified.add(answer(), drawn(name))
    assert (run.seen, len(unverified), unverified.held) == ([], 2, 2 * size)
    unverified.add(answer(), drawn("c"))
    assert (run.seen, len(unverified), unverified.held) == (["a"], 2, 2 * size)


def test_others_may_go_first_after_each_call_and_after_a_wrong_one_nothing_is_left() -> None:
    run = Checking(wrong="b")
    unverified = UnverifiedAnswers(run, budget=1 << 30)  # type: ignore[arg-type]
    for name in "abc":
        unverified.add(answer(), drawn(name))
    unverified.compare(until=lambda: True)
    assert (run.seen, len(unverified)) == (["a"], 2)
    with pytest.raises(WrongAnswer) as wrong:
        unverified.compare()
    assert wrong.value.outcome.input_set == "b"
    assert (run.seen, len(unverified), unverified.held) == (["a", "b"], 0, 0)
