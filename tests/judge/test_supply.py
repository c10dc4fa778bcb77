"""Input sets that are drawn ahead are those that would be drawn under the clock, and each is used once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge import Options, Submission
from kevin_env.judge.answer import Answer
from kevin_env.judge.contest import Contest
from kevin_env.judge.gate import Drawn, Gate, Player
from kevin_env.judge.judge import Judge
from kevin_env.judge.memory import Image, SharedRegion, joined
from kevin_env.judge.pace import Pace
from kevin_env.judge.reference import Case
from kevin_env.judge.supply import AT_ONCE, Supply
from kevin_env.judge.trial import Trial
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
    """Stands where a trial does; numbers what it draws."""

    def __init__(self, size: int = 300) -> None:
        self.bench = SimpleNamespace(device=CPU)
        self.count, self.size = 0, size

    def draw(self, distribution: str, start: int = 0, into: torch.Tensor | None = None) -> Drawn:
        self.count += 1
        tensors = [torch.full((self.size,), float(self.count))] if self.size else []
        return Drawn({"t": 0}, Image(tensors, CPU, start, into), self.count)


@pytest.fixture
def trial() -> Any:
    return Drawing()


def numbers(sets: list[Drawn]) -> list[int]:
    assert all(int(each.image.tensors[0][0]) == each.seed for each in sets)
    return [each.seed for each in sets]


def test_sets_come_in_the_order_in_which_they_were_drawn_and_go_on_where_they_end(trial: Any) -> None:
    supply = Supply(trial, budget=1 << 30)
    steps = [trial.count for _ in supply.fill(20, 3)]
    drawn = 1 + 3  # the size of one is known when the partners' are drawn in a row
    assert steps == [drawn, drawn + AT_ONCE, drawn + 2 * AT_ONCE, drawn + 20]
    assert supply.held == 20 * supply.each
    first, second = supply.take(5), supply.take(16)
    assert (numbers(first), numbers(second)) == (list(range(5, 10)), list(range(10, 26)))
    assert [each.image.start for each in second] == [i * supply.each for i in range(16)]
    assert [[s["offset"] for s in each.image.specs] for each in second] == [[each.image.start] for each in second]
    assert [len(joined([each.image for each in sets])) for sets in (first, second)] == [1, 2]
    assert supply.held == 0 and trial.count == 25


def test_the_partners_sets_are_the_same_and_lie_in_a_row_however_many_are_asked_for(trial: Any) -> None:
    """Else their bursts would be written otherwise than the submission's, to whose windows theirs are compared."""
    supply = Supply(trial, budget=0)
    few, many = supply.stock(1), supply.stock(6)
    assert len(few) == 1 and len(set(numbers(many))) == 6
    assert [each.image.start for each in many] == [i * supply.each for i in range(6)]
    assert [len(joined([each.image for each in supply.stock(count)])) for count in (1, 4, 6)] == [1, 1, 1]
    assert numbers(supply.stock(4)) == numbers(many)[:4]


def test_no_more_is_drawn_ahead_than_there_is_room_for(trial: Any) -> None:
    for budget, count in ((0, 0), (2, 2), (99, 7)):
        supply = Supply(trial, budget * Image([torch.empty(300)], CPU).end)
        assert len(list(supply.fill(7, 1))) == 1 + (count > 0)
        assert supply.held == count * supply.each
        assert len(set(numbers(supply.take(9)))) == 9


def test_calls_on_any_distribution_are_drawn_ahead_where_there_is_room_after_the_others(trial: Any) -> None:
    trial.distributions = ["own", "wide"]
    for budget, ahead in ((99, 3), (5, 1), (4, 0)):
        before, supply = trial.count, Supply(trial, budget * Image([torch.empty(300)], CPU).end)
        list(supply.fill(4, 1, 3))
        assert trial.count - before == 1 + 4 + ahead
        assert len({supply.take_other().seed for _ in range(4)}) == 4 and trial.count - before == 1 + 4 + 4


def test_inputs_without_tensors_need_no_room() -> None:
    trial: Any = Drawing(size=0)
    supply = Supply(trial, budget=5)
    assert len(list(supply.fill(3, 2))) == 2 and len(supply.take(5)) == 5 and supply.each == 0


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    """One that makes enough calls in its first round."""
    return a_judge(Pace(turns=(12, 12), seconds=60.0, windows=1, warm_ups=1))


def test_while_it_times_the_judge_draws_nothing(judge: Judge, monkeypatch) -> None:
    drawn: list[bool] = []
    draw, turn, turns = Trial.draw, Contest._turn, []

    def drawing(*given: Any) -> Drawn:
        drawn.append(judge.bench.timing.locked())
        return draw(*given)

    monkeypatch.setattr("kevin_env.judge.gated.QUIET_STEADY", float("inf"))  # one round, for which all is drawn ahead
    monkeypatch.setattr(Trial, "draw", drawing)
    monkeypatch.setattr(Contest, "_turn", lambda *given: (turns.append(1), turn(*given))[1])
    outcome = judge.judge(SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), lambda _: None).outcome
    assert outcome.category == "correct" and len(turns) == 10
    assert len(drawn) > 10 and not any(drawn)


def test_others_are_timed_while_sets_are_drawn_ahead(judge: Judge, monkeypatch) -> None:
    lease, queued, fill = judge.bench.lease, [], Supply.fill
    stages: list[str] = []

    def filling(supply: Supply, *given: int) -> Iterator[None]:
        for step in fill(supply, *given):
            queued.append(stages.count("queue"))
            yield step

    monkeypatch.setattr(Supply, "fill", filling)
    monkeypatch.setattr(lease, "wanted", lambda: True)
    judge.judge(SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), stages.append)
    assert len(queued) > 2 and queued == list(range(queued[0], queued[0] + len(queued)))


def test_a_submission_is_shown_no_input_twice_whether_it_is_screened_or_timed(judge: Judge, monkeypatch) -> None:
    shown: list[tuple[str, int, bytes]] = []
    call = Gate.call

    def calling(gate: Gate, player: Player, sets: list[Drawn], *given: Any) -> Answer:
        if not player.ours:
            shown.extend((each.input_set, each.seed, each.image.bytes.numpy().tobytes()) for each in sets)
        return call(gate, player, sets, *given)

    monkeypatch.setattr(Gate, "call", calling)
    outcome = judge.judge(SOFTMAX, Submission(code=RIGHT), Options(device="cpu"), lambda _: None).outcome
    assert outcome.category == "correct"
    names, seeds, inputs = map(list, zip(*shown, strict=True))
    assert len(names) > 20 and names.count("cpu/own") > 10 and "odd/own" in names
    assert len(set(inputs)) == len(set(seeds)) == len(names)


def test_inputs_and_planted_entries_come_from_the_secret_and_differ_from_draw_to_draw(judge: Judge) -> None:
    worker = judge.bench.take()

    def drawn(secret: str) -> list[torch.Tensor]:
        trial = Trial(judge.bench, RELU, Options(device="cpu"), secret, worker)
        trial.case = Case(RELU, "cpu", CPU)
        trial.distributions = ["own", "signed", "wide", "offset"]
        return [trial.draw("own").image.tensors[0] for _ in range(2)]

    one, same, other = drawn("a"), drawn("a"), drawn("b")
    assert all(map(torch.equal, one, same))
    assert not torch.equal(one[0], other[0])
    assert not torch.equal(one[0], one[1])
    outside = [{*((each < 0) | (each >= 1)).flatten().nonzero().flatten().tolist()} for each in (*one, *other)]
    assert len({frozenset(places) for places in outside}) == 4
    judge.bench.retire(worker)


def test_weights_come_from_the_secret(judge: Judge) -> None:
    """So that none can be written into a submission after an earlier turn."""
    problem = Problem(id="linear", name="linear", source=LINEAR)

    def lent(secret: str) -> torch.Tensor:
        regions: dict[str, torch.Tensor] = {}

        def share(name: str, region: SharedRegion, timeout: float) -> None:
            regions[name] = region.bytes.clone()

        worker: Any = SimpleNamespace(share=share, ask=lambda *given, **fields: None, memory=None)
        trial = Trial(judge.bench, problem, Options(device="cpu"), secret, worker)
        trial.enter(Case(problem, "main", CPU))
        trial.close()
        return regions["weights"]

    one, same, other = lent("a"), lent("a"), lent("b")
    assert torch.equal(one, same) and not torch.equal(one, other)
