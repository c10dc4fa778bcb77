"""What windows of gated calls tell of a speedup."""

import random
import statistics

import pytest

from kevin_env.judge.gated import QUIET_LEAST, QUIET_STEADY, Gated, Turn, quiet_speedup
from kevin_env.judge.timing import LEAST, RESOLUTION, Pair, speedup_of

GATE = 1e-3


def noisy(chance: random.Random, count: int, reference: float = 2e-3, submission: float = 1e-3) -> list[Turn]:
    """Turns in which something lengthens every window, by as much as a call."""

    def window(call: float) -> float:
        late = [(chance.random() < 0.7) * chance.uniform(0.5, 2.0) for _ in range(2)]
        return min(GATE + call * (1 + each) + chance.expovariate(5e4) for each in late)

    return [Turn(window(submission), window(reference), window(0.0), hold=0.0) for _ in range(count)]


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
def test_the_quiet_windows_among_others_are_settled_when_there_are_enough(
    rarely_quiet: bool, turns: int, settled: bool
) -> None:
    loud, quiet = Turn(9e-3, 6e-3, GATE, hold=0.0), Turn(3e-3, 5e-3, GATE, hold=0.0)
    gated = Gated([loud, quiet, quiet] * turns, rarely_quiet=rarely_quiet)
    gated.turns = gated.turns[:turns]
    assert gated.settled is settled


def test_turns_that_differ_are_not_settled() -> None:
    chance = random.Random(3)
    gated = Gated([Turn(GATE + chance.uniform(1, 9) * 1e-3, 9e-3, GATE, 0.0) for _ in range(20)], rarely_quiet=True)
    assert gated.speedup.spread > QUIET_STEADY and not gated.settled


def test_the_quiet_windows_count_where_they_are_rare() -> None:
    turns = [Turn(2e-3, 5e-3, GATE, 0.0)] * 2 + [Turn(9e-3, 9e-3, 4e-3, 0.0)] * 8
    found = quiet_speedup(turns)
    assert (found.reference, found.submission, found.ratio) == pytest.approx((4e-3, 1e-3, 4.0))
    assert found == quiet_speedup(turns) == Gated(turns, rarely_quiet=True).speedup
    assert speedup_of(Gated(turns).pairs).ratio < 2


def test_one_odd_window_that_is_too_short_counts_no_more_than_another() -> None:
    turns = [Turn(GATE, 5e-3, GATE, 0.0)] + [Turn(3e-3, 5e-3, GATE, 0.0)] * 11
    assert quiet_speedup(turns).ratio == pytest.approx(2.0)


def test_quiet_windows_vary_less_than_medians_do_and_the_interval_says_by_how_much() -> None:
    chance, trials = random.Random(1), 200
    truth = quiet_speedup(noisy(chance, 20_000)[:4000]).ratio
    quiet, medians, hits = list[float](), list[float](), 0
    for _ in range(trials):
        turns = noisy(chance, 12)
        found = quiet_speedup(turns)
        quiet.append(found.ratio)
        medians.append(Gated(turns).speedup.ratio)
        hits += found.low <= truth <= found.high
    assert statistics.stdev(quiet) / statistics.mean(quiet) < 0.7 * statistics.stdev(medians) / statistics.mean(medians)
    assert hits / trials > 0.85


def test_no_call_is_shorter_than_the_resolution() -> None:
    found = quiet_speedup([Turn(0.9 * GATE, 2 * GATE, GATE, 0.0)] * 12)
    assert found.submission == RESOLUTION and found.ratio == pytest.approx(GATE / RESOLUTION)
