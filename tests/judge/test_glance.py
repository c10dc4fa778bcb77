"""A few gated turns before bursts, and a whole round where there are none or they do not settle it."""

from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge import measure
from kevin_env.judge.burst import GLANCE, Bursts
from kevin_env.judge.contest import LEAST_PAIRS
from kevin_env.judge.timing import GATED_ALLOWANCE, Pair, Speedup, speedup_of

CALL = 200e-6
BURSTS = Bursts([Pair(2 * CALL, CALL)] * 6, [Pair(2 * CALL, CALL)] * 6, 16)


class Seen:
    """Stands where a contest does: counts turns, each with the same times."""

    def __init__(self, shortest: float) -> None:
        self.rounds: list[Any] = []
        self.turns = 0
        self.shortest = shortest
        self.unverified = SimpleNamespace(use_room=lambda: None)
        self.trial = SimpleNamespace(bench=SimpleNamespace(device=SimpleNamespace(type="cuda"), info=None))

    @property
    def enough(self) -> bool:
        return self.turns >= LEAST_PAIRS

    def gated(self, turns: tuple[int, int] | None = None) -> Speedup:
        self.rounds.append(turns)
        self.turns += 9 if turns is None else turns[0]
        return speedup_of([Pair(2 * CALL, CALL)] * self.turns)


@pytest.mark.parametrize(
    ("may", "bursts", "shortest", "rounds"),
    [
        (True, BURSTS, CALL, [GLANCE]),
        (True, BURSTS, CALL + 2 * GATED_ALLOWANCE, [GLANCE, None]),
        (True, None, CALL, [GLANCE, None]),
        (False, None, CALL, [None]),
    ],
)
def test_a_glance_is_enough_only_for_bursts_that_it_does_not_bound(
    monkeypatch: pytest.MonkeyPatch, may: bool, bursts: Bursts | None, shortest: float, rounds: list[Any]
) -> None:
    monkeypatch.setattr(measure, "may_burst", lambda contest: may)
    monkeypatch.setattr(measure, "take_bursts", lambda *given: bursts)
    contest: Any = Seen(shortest)
    outcome = measure.measure(contest, [])
    assert contest.rounds == rounds
    assert outcome.kind == "timed"
