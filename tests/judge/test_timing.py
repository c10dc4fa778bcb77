import math
import random
import statistics

import pytest

from kevin_env.judge import timing
from kevin_env.judge.timing import (
    LAUNCH_ALLOWANCE,
    Burst,
    Pair,
    burst_bounds,
    burst_calls,
    largest_unseen_gain,
    least_call,
    median_interval,
    not_below,
    speedup_of,
)


@pytest.mark.parametrize(
    ("n", "left_out"),
    # 1 - 2 * sum(binomial(n, i) for i < left_out + 1) / 2**n, by hand: n = 6: 0.969, n = 9: 0.961, n = 13: 0.978
    [(1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (13, 2), (17, 4), (39, 12)],
)
def test_the_interval_is_the_narrowest_that_covers_the_median(n: int, left_out: int) -> None:
    assert median_interval(range(n)) == (left_out, n - 1 - left_out)
    if n >= 6:
        assert _coverage(n, left_out) >= 0.95 > _coverage(n, left_out + 1)


def _coverage(n: int, left_out: int) -> float:
    return 1 - 2 * sum(math.comb(n, i) for i in range(left_out + 1)) / 2**n


def test_the_interval_covers_the_median_of_a_skewed_distribution_as_often_as_it_says() -> None:
    draw, hits, trials = random.Random(1), 0, 4000
    for _ in range(trials):
        low, high = median_interval(sorted(draw.expovariate(1.0) for _ in range(13)))
        hits += low <= math.log(2) <= high
    assert 0.95 <= hits / trials <= 0.995


def test_no_values_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no values"):
        median_interval([])


def test_a_speedup_is_the_median_of_paired_ratios() -> None:
    pairs = [Pair(reference, 1e-3) for reference in (2e-3, 2.1e-3, 1.9e-3, 2.2e-3, 1.8e-3, 2.3e-3, 40e-3)]
    found = speedup_of(pairs)
    assert found.ratio == pytest.approx(2.1)
    assert (found.low, found.high) == (pytest.approx(1.8), pytest.approx(40))
    assert (found.reference, found.submission) == (pytest.approx(2.1e-3), pytest.approx(1e-3))
    assert found.spread == pytest.approx((40 - 2.1) / 2.1)


def test_pairs_that_drift_together_give_the_ratio_that_each_of_them_has() -> None:
    found = speedup_of([Pair(3e-3 * drift, 1e-3 * drift) for drift in (1, 2, 4, 8, 16, 32)])
    assert (found.ratio, found.low, found.high) == (pytest.approx(3), pytest.approx(3), pytest.approx(3))
    assert found.spread == pytest.approx(0, abs=1e-9)


def test_no_call_is_shorter_than_the_resolution() -> None:
    found = speedup_of([Pair(20e-6, -4e-6)] * 6)  # a window less the null kernel's may come out negative
    assert found.submission == timing.RESOLUTION
    assert found.ratio == pytest.approx(20)
    assert speedup_of([Pair(-1.0, -2.0)] * 6).ratio == 1.0


def test_the_ratio_does_not_depend_on_the_order_of_the_pairs() -> None:
    pairs = [Pair(1e-3 * (i + 1), 1e-3) for i in range(11)]
    assert speedup_of(pairs) == speedup_of(pairs[::-1])
    assert speedup_of(pairs).ratio == pytest.approx(statistics.median(range(1, 12)))


def test_a_burst_is_believed_down_to_the_allowance_below_the_shortest_gated_call() -> None:
    gated, allowance = 300e-6, 120e-6
    least = least_call(1e-6, 1e-6, LAUNCH_ALLOWANCE / 16, gated, allowance)
    assert least == pytest.approx(gated - allowance)
    told = not_below([Pair(1e-4, call) for call in (gated, gated * 10, gated - allowance / 2, 1e-6)], least)
    assert [pair.submission for pair in told] == pytest.approx([gated, gated * 10, gated - allowance / 2, least])
    assert {pair.reference for pair in told} == {1e-4}


GATE, SIZE, LEAD = 170e-6, 16, 2


def burst(call: float, first: float = 0.0, moved: float = 0.0) -> Burst:
    """A side whose first launch takes longer by `first`, and who moves work out of the part that is timed."""
    return Burst((SIZE - LEAD) * call - moved, GATE + first + SIZE * call)


def test_one_call_of_a_burst_is_its_share_of_the_part_that_is_timed() -> None:
    (pair,) = burst_calls([(burst(11e-6), burst(7e-6))], SIZE - LEAD)
    assert (pair.reference, pair.submission) == (pytest.approx(11e-6), pytest.approx(7e-6))


@pytest.mark.parametrize(
    ("first", "moved", "told"),
    [
        (0.0, 0.0, 100e-6),
        (140e-6, 0.0, 100e-6),
        (200e-6, 0.0, 100e-6 + 50e-6 / SIZE),
        (140e-6, 1e-3, 100e-6 + 140e-6 / SIZE),
        (0.0, 1e-3, 100e-6),
    ],
    ids=["plain", "launches slowly", "launches very slowly", "launches slowly and moves work", "moves work"],
)
def test_whoever_moves_work_out_of_what_is_timed_is_held_to_the_whole(first: float, moved: float, told: float) -> None:
    bursts = [(burst(150e-6), burst(call, first, moved)) for call in (99.8e-6, 100e-6, 100.2e-6)]
    calls = burst_calls(bursts, SIZE - LEAD)
    assert (calls[1].submission == pytest.approx(100e-6)) is not bool(moved)
    bound = burst_bounds(bursts, calls, SIZE)[1].submission
    assert bound == pytest.approx(100e-6 + first / SIZE)
    least = least_call(calls[1].submission, bound, LAUNCH_ALLOWANCE / SIZE, 0.0, timing.GATED_ALLOWANCE)
    assert not_below(calls, least)[1].submission == pytest.approx(told), "what was moved does not pay"
    assert (not_below(calls, least) == calls) is (not moved and first < 150e-6)


def test_what_the_allowance_could_hide_is_told_and_is_nothing_for_a_gated_figure() -> None:
    assert largest_unseen_gain(1e-4, allowed=1e-4) == pytest.approx(0.5)
    assert largest_unseen_gain(1.0, allowed=1e-4) < 1e-4
    assert largest_unseen_gain(1e-4, allowed=0.0) == 0.0


@pytest.mark.parametrize(
    ("shortest", "call", "allowed"),
    [(2e-4, 2e-4, 1e-4), (2.9e-4, 2e-4, 1.9e-4), (9e-4, 2e-4, 2e-4), (1e-4, 2e-4, 1e-4)],
)
def test_hosts_that_launch_slowly_are_allowed_more_up_to_a_bound(shortest: float, call: float, allowed: float) -> None:
    assert timing.allowance(shortest, call) == pytest.approx(allowed)


def test_few_pairs_have_students_interval_which_covers_as_often_as_it_says() -> None:
    draw, trials = random.Random(2), 2000
    for count in timing.STUDENT:
        hits = 0
        for _ in range(trials):
            found = speedup_of([Pair(math.exp(draw.gauss(0, 0.1)), 1.0) for _ in range(count)])
            hits += found.low <= 1 <= found.high
        assert 0.93 <= hits / trials <= 0.97, count


def test_an_interval_covers_what_varies_between_judgements() -> None:
    draw, trials, hits = random.Random(3), 1000, {0.0: 0, 0.1: 0}
    for _ in range(trials):
        shift = draw.gauss(0, 0.1 / 1.96)
        found = speedup_of([Pair(math.exp(shift + draw.gauss(0, 0.03)), 1.0) for _ in range(13)])
        for between in hits:
            wide = found.widened(between)
            hits[between] += wide.low <= 1 <= wide.high
    assert hits[0.0] / trials < 0.6 and 0.93 <= hits[0.1] / trials <= 0.985


@pytest.mark.parametrize(("submission", "noisy"), [(3e-6, True), (5e-6, False)])
def test_the_speedup_of_a_call_that_is_too_short_is_noisy(submission: float, noisy: bool) -> None:
    found = speedup_of([Pair(10e-6, submission)] * 6).widened(0.004)
    assert found.noisy is noisy and found.low < found.ratio < found.high
