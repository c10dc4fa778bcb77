import math
import random
import statistics

import pytest

from kevin_env.judge import timing
from kevin_env.judge.timing import Pair, burst_call, burst_counts, largest_unseen_gain, median_interval, speedup_of


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


def test_a_burst_counts_up_to_the_allowance_below_the_gated_call() -> None:
    gated, allowance = 300e-6, timing.GATED_ALLOWANCE
    assert burst_counts(gated, gated)
    assert burst_counts(gated, gated * 10)
    assert burst_counts(gated, gated - 0.999 * allowance)
    assert not burst_counts(gated, gated - 1.001 * allowance)
    assert not burst_counts(gated, 0.0)


def test_one_call_of_a_burst_is_the_difference_of_two() -> None:
    fixed, call = 70e-6, 11e-6
    assert burst_call(fixed + 16 * call, fixed + 2 * call, 16, 2) == pytest.approx(call)


def test_what_the_allowance_could_hide_is_told_and_is_nothing_for_a_gated_figure() -> None:
    assert largest_unseen_gain(timing.GATED_ALLOWANCE, from_burst=True) == pytest.approx(0.5)
    assert largest_unseen_gain(1.0, from_burst=True) < 1e-4
    assert largest_unseen_gain(timing.GATED_ALLOWANCE, from_burst=False) == 0.0
