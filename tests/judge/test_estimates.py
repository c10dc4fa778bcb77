import math
import random
import statistics

import pytest

from kevin_env.judge.timing import estimates
from kevin_env.judge.timing.estimates import Pair, Speedup, speedup_of, speedup_of_chains
from kevin_env.judge.workers.usage import Ran

Chains = list[list[float]]


def test_the_interval_of_many_pairs_covers_as_often_as_it_says() -> None:
    draw, trials = random.Random(1), 3000
    for count in (7, 10, 15, 25):
        hits = 0
        for _ in range(trials):
            found = speedup_of([Pair(math.exp(draw.gauss(0, 0.15)), 1.0) for _ in range(count)])
            hits += found.low <= 1 <= found.high
        assert 0.9 <= hits / trials <= 0.99, (count, hits / trials)


def test_no_pairs_have_no_speedup() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        speedup_of([])


def test_a_speedup_is_the_median_of_paired_ratios() -> None:
    pairs = [
        Pair(reference, 1e-3) for reference in (2e-3, 2.1e-3, 1.9e-3, 2.2e-3, 1.8e-3, 2.3e-3, 40e-3)
    ]
    found = speedup_of(pairs)
    assert found.ratio == pytest.approx(2.1)
    assert 1.6 < found.low < 2.0 and 2.2 < found.high < 2.7  # one that was disturbed does not show
    assert (found.reference, found.submission) == (pytest.approx(2.1e-3), pytest.approx(1e-3))
    assert found.spread == pytest.approx((found.high - 2.1) / 2.1)


def test_pairs_that_drift_together_give_the_ratio_that_each_of_them_has() -> None:
    found = speedup_of([Pair(3e-3 * drift, 1e-3 * drift) for drift in (1, 2, 4, 8, 16, 32)])
    assert (found.ratio, found.low, found.high) == (
        pytest.approx(3),
        pytest.approx(3),
        pytest.approx(3),
    )
    assert found.spread == pytest.approx(0, abs=1e-9)


def test_no_call_is_shorter_than_the_resolution() -> None:
    found = speedup_of(
        [Pair(20e-6, -4e-6)] * 6
    )  # a window less the null kernel's may come out negative
    assert found.submission == estimates.RESOLUTION
    assert found.ratio == pytest.approx(20)
    assert speedup_of([Pair(-1.0, -2.0)] * 6).ratio == 1.0


def test_the_ratio_does_not_depend_on_the_order_of_the_pairs() -> None:
    pairs = [Pair(1e-3 * (i + 1), 1e-3) for i in range(11)]
    assert speedup_of(pairs) == speedup_of(pairs[::-1])
    assert speedup_of(pairs).ratio == pytest.approx(statistics.median(range(1, 12)))


def test_few_pairs_have_students_interval_which_covers_as_often_as_it_says() -> None:
    draw, trials = random.Random(2), 2000
    for count in estimates.STUDENT:
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


US = 1e-6
CONSTANT = 285 * US


def chain(call: float, *more: float, count: int = 12) -> list[float]:
    """Links of one chain; `more` is added to one after the other, from the second on."""
    return [CONSTANT + call + late for late in (0.0, *more, *[0.0] * (count - 1 - len(more)))]


def of_links(reference: Chains, submission: Chains, constant: float) -> Speedup:
    """The speedup of links that consist of a constant and the call."""
    return speedup_of_chains(
        *(
            [[link - constant for link in chain] for chain in side]
            for side in (reference, submission)
        )
    )


def test_the_speedup_of_chains_is_that_of_their_links_less_the_constant() -> None:
    found = of_links([chain(200 * US)], [chain(100 * US)], CONSTANT)
    assert (found.ratio, found.reference, found.submission) == pytest.approx(
        (2.0, 200 * US, 100 * US)
    )
    assert found.low < 2.0 < found.high
    assert of_links([[CONSTANT]], [[0.0]], CONSTANT).submission == estimates.RESOLUTION
    with pytest.raises(ValueError, match="no chains"):
        of_links([], [], CONSTANT)


def test_neither_a_late_link_nor_a_late_chain_moves_it() -> None:
    reference, usual = [chain(200 * US)] * 3, chain(100 * US)
    clean = of_links(reference, [usual] * 3, CONSTANT)
    late_links = of_links(reference, [chain(100 * US, *[150 * US] * 5)] * 3, CONSTANT)
    late_chain = of_links(reference, [usual, chain(300 * US), usual], CONSTANT)
    first = [1e-3 + usual[0], *usual[1:]]
    assert [found.ratio for found in (late_links, late_chain)] == pytest.approx([clean.ratio] * 2)
    assert late_links.spread < 1.5 * clean.spread
    assert of_links(reference, [first] * 3, CONSTANT) == clean
    assert estimates.call_of([1e-3, 3e-3, 9e-3]) == pytest.approx(3e-3), (
        "the first of several does not count"
    )


def test_single_links_have_an_interval_too() -> None:
    found = of_links([[CONSTANT + 1.0]], [[CONSTANT + 0.5]], CONSTANT)
    assert found.ratio == pytest.approx(2.0) and 0.005 < found.spread < 0.02


@pytest.mark.parametrize("pairs", [1, 2])
@pytest.mark.parametrize(
    ("reference", "submission"), [(200, 100), (30, 60), (20, 20), (3000, 1000)]
)
def test_the_interval_of_chains_covers_as_often_as_it_says(
    pairs: int, reference: float, submission: float
) -> None:
    """Errors of processes, chains and the constant are as stated; those of links are 1 us."""
    draw, trials, hits = random.Random(5), 1500, 0

    def drawn(call: float) -> list[list[float]]:
        process = draw.gauss(0, estimates.PROCESS_ERROR)
        shifts = [process + draw.gauss(0, estimates.CHAIN_ERROR) for _ in range(pairs)]
        return [
            [CONSTANT + call * US + shift + draw.gauss(0, US) for _ in range(12)]
            for shift in shifts
        ]

    for _ in range(trials):
        null_links = [CONSTANT + draw.gauss(0, US) for _ in range(12)]
        constant = estimates.lower_quartile(null_links) + draw.gauss(0, estimates.CONSTANT_ERROR)
        found = of_links(drawn(reference), drawn(submission), constant)
        hits += found.low <= reference / submission <= found.high
    assert 0.93 <= hits / trials <= 0.975, hits / trials


def test_chains_that_differ_more_than_they_are_said_to_widen_the_interval() -> None:
    draw, trials, hits = random.Random(6), 1000, 0
    for _ in range(trials):
        reference = [chain(200 * US * math.exp(draw.gauss(0, 0.05))) for _ in range(4)]
        found = of_links(reference, [chain(100 * US)] * 4, CONSTANT)
        hits += found.low <= 2.0 <= found.high
    assert hits / trials >= 0.92, hits / trials


@pytest.mark.parametrize(
    ("waited", "between"), [(0.5, estimates.BETWEEN["cpu"]), (1.0, estimates.BETWEEN_CROWDED)]
)
def test_judgements_vary_more_where_processes_wait_for_processors(
    waited: float, between: float
) -> None:
    assert estimates.between(Ran(1.0, 5.0), Ran(2.0, 5.0 + waited)) == between


@pytest.mark.parametrize(("submission", "noisy"), [(3 * US, True), (20 * US, False)])
def test_the_speedup_of_a_call_that_is_too_short_is_noisy(submission: float, noisy: bool) -> None:
    assert of_links([chain(20 * US)], [chain(submission)], CONSTANT).noisy is noisy


def test_a_long_calls_interval_on_a_cpu_is_that_of_both_sides() -> None:
    found = estimates.Speedup(2.0, 2.0, 2.0, 0.2, 0.1)
    wide = estimates.widened_on_cpu(found, 0.3e-3, US, 0.2)
    usual = found.widened(0.2)
    assert wide.low == pytest.approx(usual.low, rel=0.02)
    assert wide.high == pytest.approx(usual.high, rel=0.02)


def test_what_cannot_be_told_from_no_call_is_not_paid_as_one_of_a_microsecond() -> None:
    """A call of 3 ms against one of about 0.4 ms, beside an overhead of 0.3 ms."""
    draw, paid = random.Random(7), list[float]()
    for _ in range(200):
        nulls = [0.3e-3 * math.exp(draw.gauss(0, 0.1)) for _ in range(8)]
        overhead, least = statistics.median(nulls), estimates.resolution_of(nulls)
        sides = [t * math.exp(draw.gauss(0, 0.07)) for t in (3.3e-3, 0.7e-3)]
        pairs = [
            [max(side * math.exp(draw.gauss(0, 0.1)) - overhead, least) for side in sides]
            for _ in nulls
        ]
        found = estimates.speedup_of([Pair(*pair) for pair in pairs])
        paid.append(estimates.widened_on_cpu(found, overhead, least, 0.2).low)
    assert sum(each > 7.5 for each in paid) <= 0.05 * len(paid) and statistics.median(paid) > 2.5


def test_the_resolution_is_the_error_of_the_overhead() -> None:
    assert estimates.resolution_of([300 * US] * 8) == estimates.RESOLUTION
    assert 5 * US < estimates.resolution_of([(300 + 30 * n) * US for n in range(9)]) < 60 * US
