"""What windows of gated calls tell of a speedup."""

import random

import pytest

from kevin_env.judge.gated import QUIET_LEAST, QUIET_STEADY, Gated, Turn
from kevin_env.judge.timing import LEAST, Pair, speedup_of

GATE = 1e-3


def test_a_gated_call_is_a_window_less_what_the_gate_costs() -> None:
    gated = Gated([Turn(0.5, 1.0, null, hold=0.0625) for null in (0.125, 0.1875, 0.3125)])
    assert (gated.gate_cost, gated.pairs) == (0.125, [Pair(0.875, 0.375)] * 3)
    assert (gated.shortest, gated.shortest_reference) == (0.4375, 0.9375)
    assert gated.speedup == speedup_of(gated.pairs)
    long = Gated(gated.turns, fitting_gates=[0.25, 0.25, 0.5])
    assert (long.gate_cost, long.pairs) == (0.25, [Pair(0.75, 0.25)] * 3)
    assert (long.shortest, long.shortest_reference) == (0.25, 0.75)


@pytest.mark.parametrize("rarely_quiet", [False, True])
@pytest.mark.parametrize(("turns", "settled"), [(LEAST - 1, False), (LEAST, True)])
def test_calm_windows_are_settled_from_so_many_pairs_on_as_an_interval_needs(
    rarely_quiet: bool, turns: int, settled: bool
) -> None:
    gated = Gated([Turn(3e-3, 5e-3, GATE, hold=0.0)] * turns, rarely_quiet=rarely_quiet)
    assert gated.settled is settled and gated.speedup.ratio == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("rarely_quiet", "turns", "settled"),
    [(False, 2 * QUIET_LEAST, False), (True, QUIET_LEAST - 2, False), (True, QUIET_LEAST, True)],
)
def test_where_they_are_rarely_calm_more_turns_settle_them(rarely_quiet: bool, turns: int, settled: bool) -> None:
    each = [Turn(submission, 5e-3, GATE, hold=0.0) for submission in (2.9e-3, 3e-3, 3.1e-3)]
    gated = Gated((each * turns)[:turns], rarely_quiet=rarely_quiet)
    assert gated.settled is settled


def test_turns_that_differ_are_not_settled() -> None:
    chance = random.Random(3)
    gated = Gated([Turn(GATE + chance.uniform(1, 9) * 1e-3, 9e-3, GATE, 0.0) for _ in range(20)], rarely_quiet=True)
    assert gated.speedup.spread > QUIET_STEADY and not gated.settled


def test_where_they_are_rare_the_quiet_gates_tell_what_is_taken_from_both_sides() -> None:
    turns = [Turn(3e-3, 4e-3, gate, hold=0.0) for gate in (8e-3, 1e-3, 2e-3, 5e-3, 1e-3, 9e-3, 7e-3)]
    assert Gated(turns, rarely_quiet=True).speedup.ratio == pytest.approx(3 / 2)
    assert Gated(turns).gate_cost == 5e-3
