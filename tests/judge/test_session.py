"""Timing sessions: which process runs when, on which inputs, and when answers are compared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.handshake.claims import CallClaim
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.judge import Judge
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.session import (
    STOCK,
    InputSupply,
    TimingSession,
    UnverifiedAnswers,
    WrongAnswer,
)
from kevin_env.outcome import Incorrect
from kevin_env.problem import Problem, load_problem

NAMES = ("submission", "reference", "null")


class Side:
    """Stands where a process does; whether it runs. It goes on at once, and stops when that is
    waited for.
    """

    def __init__(self) -> None:
        self.runs = self.to_run = True

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        self.to_run = not frozen
        self.runs = self.runs or self.to_run
        if wait:
            self.settle()

    def settle(self) -> None:
        self.runs = self.to_run


class Called:
    """Three sides, and the inputs that they were given."""

    def __init__(self) -> None:
        self.sides = {name: Side() for name in NAMES}
        self.players: dict[str, Any] = {
            name: SimpleNamespace(worker=side) for name, side in self.sides.items()
        }
        self.given: list[str] = []
        self.compared: list[str] = []
        call = SimpleNamespace(call=lambda player, drawn, timeout: self._note(drawn))
        run: Any = SimpleNamespace(
            worker=self.sides["submission"],
            player=self.players["submission"],
            handshake=call,
            call=self._note,
        )
        supply: Any = SimpleNamespace(
            take=lambda count: ["fresh"] * count, stock=lambda count: ["stock"] * count
        )
        unverified: Any = SimpleNamespace(add=lambda answer, drawn: self.compared.append(drawn))
        apart: Any = call
        self.session = TimingSession(
            run, self.players["reference"], self.players["null"], unverified, supply, apart
        )

    def _note(self, drawn: str) -> str:
        self.given.append(drawn)
        return "an answer"


@pytest.fixture
def made() -> Called:
    return Called()


def test_all_three_stand_still_inside(made: Called) -> None:
    with pytest.raises(KeyError), made.session.still():
        assert not any(side.runs for side in made.sides.values())
        raise KeyError
    assert all(side.runs for side in made.sides.values())


def test_only_the_submissions_inputs_are_fresh_and_only_its_answers_are_compared(
    made: Called,
) -> None:
    for name in NAMES:
        made.session.call(made.players[name])
    assert made.given == ["fresh", "stock", "stock"] and made.compared == ["fresh"]


CPU = torch.device("cpu")


SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))


RELU = load_problem(str(Path(__file__).parent.parent / "submissions/problems/relu.py"))


RIGHT = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""


LINEAR = """
import torch
class Model(torch.nn.Linear):
    pass
def get_inputs():
    return [torch.randn(4, 16)]
def get_init_inputs():
    return [16, 8]
"""


class Drawing:
    """Stands where a run does; numbers what it draws."""

    def __init__(self, size: int = 300) -> None:
        self.bench, self.outputs = SimpleNamespace(device=CPU), [torch.empty(64)]
        self.count, self.size, self.distributions = 0, size, ["own", "wide"]

    def draw(self, distribution: str) -> Drawn:
        self.count += 1
        tensors = [torch.full((self.size,), float(self.count))] if self.size else []
        return Drawn({"t": 0}, Image(tensors, CPU), self.count)


EACH = Image([torch.empty(300)], CPU).end + 4 * 64
"""Bytes of a set and of the output of its call."""


def numbers(sets: list[Drawn]) -> list[int]:
    return [each.seed for each in sets]


def test_sets_come_in_the_order_in_which_they_were_drawn_and_go_on_where_they_end() -> None:
    run: Any = Drawing()
    supply = InputSupply(run, budget=1 << 30)
    supply.fill(20)
    assert run.count == STOCK + 21  # one of another distribution is the first
    assert numbers(supply.take(5) + supply.take(16)) == list(range(STOCK + 2, STOCK + 23))
    assert supply.untimed().seed == STOCK + 1


@pytest.mark.parametrize(("budget", "ahead"), [(0, 1), (2, 2), (99, 7)])
def test_no_more_is_drawn_ahead_than_there_is_room_for(budget: int, ahead: int) -> None:
    run: Any = Drawing()
    supply = InputSupply(run, budget * EACH)
    before = run.count
    supply.fill(7)
    assert (run.count - before, supply.fitting) == (1 + ahead, max(1, budget))
    assert len({*numbers(supply.take(9))}) == 9


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(Pace(pairs=(4, 4), seconds=60.0, warm_ups=1))


def test_while_it_times_the_judge_draws_nothing(judge: Judge, monkeypatch) -> None:
    drawn, draw = list[bool](), SubmissionRun.draw

    def drawing(*given: Any) -> Drawn:
        drawn.append(judge.bench.lease.wanted())
        return draw(*given)

    monkeypatch.setattr(SubmissionRun, "draw", drawing)
    outcome = judge.judge(
        SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), lambda _: None
    ).outcome
    assert outcome.category == "correct" and len(drawn) > 12 and not any(drawn)


def test_a_submission_sees_no_input_twice(judge: Judge, monkeypatch) -> None:
    shown: list[tuple[str, int, bytes]] = []
    call = CpuHandshake.call

    def calling(handshake: CpuHandshake, player: Player, drawn: Drawn, *given: Any) -> Answer:
        if not player.trusted:
            shown.append((drawn.input_set, drawn.seed, drawn.image.bytes.numpy().tobytes()))
        return call(handshake, player, drawn, *given)

    monkeypatch.setattr(CpuHandshake, "call", calling)
    outcome = judge.judge(
        SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), lambda _: None
    ).outcome
    assert outcome.category == "correct"
    names, seeds, inputs = map(list, zip(*shown, strict=True))
    assert len(names) > 15 and names.count("cpu/own") > 5 and "odd/own" in names
    assert len(set(inputs)) == len(set(seeds)) == len(names)


def test_inputs_and_outliers_follow_from_the_secret_and_differ_between_draws(
    judge: Judge,
) -> None:
    worker = judge.bench.candidates.take()

    def drawn(secret: str) -> list[torch.Tensor]:
        run = SubmissionRun(judge.bench, RELU, Options(device="cpu"), secret, worker)
        run.case = Case(RELU, "cpu", CPU)
        run.case.draw_weights(1)
        run.distributions = ["own", "signed", "wide", "offset"]
        return [run.draw("own").image.tensors[0] for _ in range(2)]

    one, same, other = drawn("a"), drawn("a"), drawn("b")
    assert all(map(torch.equal, one, same))
    assert not torch.equal(one[0], other[0])
    assert not torch.equal(one[0], one[1])
    outside = [
        {*((each < 0) | (each >= 1)).flatten().nonzero().flatten().tolist()}
        for each in (*one, *other)
    ]
    assert len({frozenset(places) for places in outside}) == 4
    judge.bench.candidates.retire(worker)


def test_weights_come_from_the_secret(judge: Judge) -> None:
    """So that none can be written into a submission after an earlier turn."""
    problem = Problem(id="linear", name="linear", source=LINEAR)

    def lent(secret: str) -> torch.Tensor:
        regions: dict[str, torch.Tensor] = {}

        def share(name: str, region: SharedRegion, timeout: float) -> None:
            regions[name] = region.bytes.clone()

        worker: Any = SimpleNamespace(
            share=share, ask=lambda *given, **fields: {}, memory=None, charged=0.0
        )
        run = SubmissionRun(judge.bench, problem, Options(device="cpu"), secret, worker)
        run.enter("main")
        run.close()
        return regions["weights"]

    one, same, other = lent("a"), lent("a"), lent("b")
    assert torch.equal(one, same) and not torch.equal(one, other)


COUNTING = """
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


WRONG = COUNTING.replace("return right", f"return right * (1 + (self.calls == {SCREENED}))")


GONE = WRONG.replace("right =", f"os._exit(5) if self.calls == {SCREENED + 1} else None; right =")
"""Wrong once, and gone in the next call."""


BUDGETS = {"cuda": 0.25, "cpu": 0.05}, {"cuda": 0.0, "cpu": 0.0}


@pytest.fixture(scope="module")
def strict_judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(PACE)


def judged(judge: Judge, code: str) -> tuple[Judgement, list[str]]:
    stages: list[str] = []
    judgement = judge.judge(SOFTMAX, Submission(code=code), Options(device="cpu"), stages.append)
    return judgement, stages


@pytest.mark.parametrize("share", BUDGETS)
@pytest.mark.parametrize("code", [WRONG, GONE])
def test_a_wrong_timed_answer_is_found_whenever_it_is_compared(
    strict_judge: Judge, monkeypatch: pytest.MonkeyPatch, share: dict[str, float], code: str
) -> None:
    monkeypatch.setattr("kevin_env.judge.timing.session.WAITING_SHARE", share)
    judgement, stages = judged(strict_judge, code)
    outcome = judgement.outcome
    assert isinstance(outcome, Incorrect) and (outcome.kind, judgement.flags) == ("values", ())
    assert outcome.input_set and outcome.input_set.startswith("cpu/") and outcome.differences
    if code == WRONG:
        assert ("verify" in stages[stages.index("time") :]) is (share is BUDGETS[0])


@pytest.mark.parametrize("share", BUDGETS)
def test_every_timed_answer_is_compared_before_the_verdict(
    strict_judge: Judge, monkeypatch: pytest.MonkeyPatch, share: dict[str, float]
) -> None:
    given, compared, alone = [], [], []
    call, check = SubmissionRun.call, SubmissionRun.check

    def ran(run: SubmissionRun, drawn: Drawn) -> Answer:
        given.append(call(run, drawn))
        return given[-1]

    def checked(run: SubmissionRun, answer: Answer, drawn: Drawn) -> Incorrect | None:
        compared.append(answer)
        alone.append(strict_judge.bench.lease.wanted())
        return check(run, answer, drawn)

    monkeypatch.setattr("kevin_env.judge.timing.session.WAITING_SHARE", share)
    monkeypatch.setattr(SubmissionRun, "call", ran)
    monkeypatch.setattr(SubmissionRun, "check", checked)
    assert judged(strict_judge, COUNTING)[0].outcome.category == "correct"
    assert len(given) > 8 and [id(each) for each in compared] == [id(each) for each in given]
    assert any(alone) is (share is BUDGETS[1])


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


def test_the_oldest_answer_is_compared_at_once_if_too_many_wait() -> None:
    run, size = Checking(), drawn("").image.bytes.numel()
    unverified = UnverifiedAnswers(run, budget=2 * size)  # type: ignore[arg-type]
    for name in "ab":
        unverified.add(answer(), drawn(name))
    assert (run.seen, len(unverified), unverified.held) == ([], 2, 2 * size)
    unverified.add(answer(), drawn("c"))
    assert (run.seen, len(unverified), unverified.held) == (["a"], 2, 2 * size)


def test_comparing_can_pause_after_each_answer_and_ends_at_a_wrong_one() -> None:
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
