"""Input sets that are drawn ahead are those that would be drawn under the clock, and each is used
once.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge import Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.judge import Judge
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.session import STOCK, InputSupply
from kevin_env.problem import Problem, load_problem

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


@pytest.mark.parametrize(("budget", "stock"), [(STOCK, 1), (STOCK + 1, STOCK)])
def test_the_partners_have_a_few_sets_that_come_in_turn_where_there_is_room(
    budget: int, stock: int
) -> None:
    run: Any = Drawing()
    supply = InputSupply(run, budget * EACH)
    given = numbers(supply.stock(2) + supply.stock(5))
    assert given == [1 + number % stock for number in range(7)]
    assert not {*given} & {*numbers(supply.take(3))}


@pytest.mark.parametrize(("budget", "ahead"), [(0, 1), (2, 2), (99, 7)])
def test_no_more_is_drawn_ahead_than_there_is_room_for(budget: int, ahead: int) -> None:
    run: Any = Drawing()
    supply = InputSupply(run, budget * EACH)
    before = run.count
    supply.fill(7)
    assert (run.count - before, supply.fitting) == (1 + ahead, max(1, budget))
    assert len({*numbers(supply.take(9))}) == 9


def test_inputs_without_tensors_need_room_for_outputs_only() -> None:
    run: Any = Drawing(size=0)
    run.outputs = []
    assert InputSupply(run, budget=5).fitting == 5 and len(InputSupply(run, budget=0).take(5)) == 5


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(Pace(pairs=(4, 4), seconds=60.0, warm_ups=1))


def test_while_it_times_the_judge_draws_nothing(judge: Judge, monkeypatch) -> None:
    drawn, draw = list[bool](), SubmissionRun.draw

    def drawing(*given: Any) -> Drawn:
        drawn.append(judge.bench.timing.locked())
        return draw(*given)

    monkeypatch.setattr(SubmissionRun, "draw", drawing)
    outcome = judge.judge(
        SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), lambda _: None
    ).outcome
    assert outcome.category == "correct" and len(drawn) > 12 and not any(drawn)


def test_others_are_timed_while_partners_warm_up_and_when_sets_were_drawn_ahead(
    judge: Judge, monkeypatch
) -> None:
    stages: list[str] = []
    monkeypatch.setattr(judge.bench.lease, "wanted", lambda: True)
    judge.judge(SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), stages.append)
    before = stages[: stages.index("time")]
    assert (
        before[-5:] == ["load"] + ["queue"] * 4
    )  # after each baseline has warmed up, after drawing, and for all of it


def test_a_submission_is_shown_no_input_twice_whether_it_is_screened_or_timed(
    judge: Judge, monkeypatch
) -> None:
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


def test_inputs_and_planted_entries_come_from_the_secret_and_differ_from_draw_to_draw(
    judge: Judge,
) -> None:
    worker = judge.bench.candidates.take()

    def drawn(secret: str) -> list[torch.Tensor]:
        run = SubmissionRun(judge.bench, RELU, Options(device="cpu"), secret, worker)
        run.case = Case(RELU, "cpu", CPU)
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

        worker: Any = SimpleNamespace(share=share, ask=lambda *given, **fields: {}, memory=None)
        run = SubmissionRun(judge.bench, problem, Options(device="cpu"), secret, worker)
        run.enter(Case(problem, "main", CPU))
        run.close()
        return regions["weights"]

    one, same, other = lent("a"), lent("a"), lent("b")
    assert torch.equal(one, same) and not torch.equal(one, other)
