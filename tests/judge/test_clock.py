"""The clock of a CPU, with calls whose durations the test chooses."""

import itertools
import os
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge.api import Pace
from kevin_env.judge.timing.cpu_clock import SIDES, time_beside
from kevin_env.judge.trial import Rejected
from kevin_env.outcome import Correct, Incorrect

OVERHEAD = 1e-3
Seconds = Callable[[str], float]


class Calls:
    """In place of a trial and its baselines: notes who is called, and compares nothing.

    Args:
        seconds: How long a call of `reference`, `own` or `null` takes.
        pace: Of the judge.
        slow: Whether the submission's calls are long, and much longer than the reference's.
        wrong: The submission's call, from 1, whose answer is wrong.
    """

    def __init__(self, seconds: Seconds, pace: Pace, slow: bool = False, wrong: int = 0) -> None:
        self.made = list[str]()
        self.compared = list[int]()
        self._seconds = seconds
        self._wrong = wrong
        self._numbers = itertools.count(1)
        process, info = SimpleNamespace(pid=os.getpid()), SimpleNamespace(processors=2)
        self.beside: Any = SimpleNamespace(call=self._call, null=SimpleNamespace(worker=process))
        self.trial: Any = SimpleNamespace(
            bench=SimpleNamespace(pace=pace, info=info), options=SimpleNamespace(timing_precision=None),
            baseline="PyTorch eager", seconds=2.0 if slow else 2e-3, much_slower=slow, distributions=["own", "wide"],
            draw=lambda distribution: distribution, call=self._call_own, worker=process,
            check=self._wrong_with,
        )  # fmt: skip

    def time(self) -> Correct:
        return time_beside(self.trial, self.beside)

    def _call(self, name: str) -> float:
        self.made.append(name)
        return OVERHEAD + self._seconds(name)

    def _call_own(self, drawn: str, timed: bool) -> Any:
        assert timed
        name = "own" if drawn == "own" else "other"
        return SimpleNamespace(seconds=self._call(name), number=next(self._numbers))

    def _wrong_with(self, answer: Any, drawn: str) -> Incorrect | None:
        self.compared.append(answer.number)
        wrong = Incorrect(kind="values", message="wrong", input_set=drawn)
        return wrong if answer.number == self._wrong else None


def steady(name: str) -> float:
    return {"reference": 4e-3, "own": 2e-3, "other": 2e-3, "null": 0.0}[name]


def test_all_are_called_equally_often_in_an_order_that_cannot_be_known() -> None:
    orders = set[tuple[str, ...]]()
    for _ in range(20):
        calls = Calls(steady, Pace(pairs=(6, 6), seconds=60.0))
        outcome = calls.time()
        assert outcome.speedup == pytest.approx(2.0, rel=1e-3) and outcome.kind == "timed"
        assert calls.made.count("other") == 1
        made = [each for each in calls.made if each != "other"]
        turns = [tuple(made[at : at + len(SIDES)]) for at in range(0, 6 * len(SIDES), len(SIDES))]
        assert all(sorted(turn) == sorted(SIDES) for turn in turns)
        orders |= {*turns}
    assert len(orders) == 6


def test_a_much_slower_submission_is_called_in_two_turns() -> None:
    slow = lambda name: 2.0 if name in ("own", "other") else steady(name)  # noqa: E731
    calls = Calls(slow, Pace(pairs=(21, 75), seconds=60.0), slow=True)
    assert calls.time().speedup == pytest.approx(2e-3, rel=1e-3)
    threads_too = 1
    assert calls.made.count("own") == 2 + threads_too and calls.made.count("other") == 1
    assert calls.made.count("reference") == 2


def test_a_few_late_calls_do_not_change_the_speedup() -> None:
    number = itertools.count()
    late = lambda name: steady(name) * (9 if next(number) in (0, 10, 20) else 1)  # noqa: E731
    assert Calls(late, Pace(pairs=(9, 9), seconds=60.0)).time().speedup == pytest.approx(
        2.0, rel=1e-3
    )


@pytest.mark.parametrize(("vary", "pairs"), [(0.01, 21), (9.0, 75)])
def test_calls_are_made_until_the_interval_is_narrow(vary: float, pairs: int) -> None:
    draw = random.Random(1)
    varying = lambda name: steady(name) * draw.uniform(1, 1 + vary)  # noqa: E731
    calls = Calls(varying, Pace(pairs=(21, 75), seconds=60.0, precision=0.05))
    calls.time()
    # one on other inputs, and one each of the submission and the null model to count threads
    assert len(calls.made) == len(SIDES) * pairs + 3


def test_every_answer_is_compared_and_a_wrong_one_rejects_the_submission() -> None:
    right = Calls(steady, Pace(pairs=(2, 2), seconds=60.0))
    right.time()
    made = 2 + 2
    assert sorted(right.compared) == list(range(1, made + 1))
    for number in range(1, made + 1):
        with pytest.raises(Rejected) as rejected:
            Calls(steady, Pace(pairs=(2, 2), seconds=60.0), wrong=number).time()
        assert rejected.value.outcome.kind == "values"
