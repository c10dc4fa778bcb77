import math
import random

import pytest

from kevin_env.judge.timing import estimates
from kevin_env.judge.timing.estimates import Pair, Speedup, speedup_of_calls, speedup_of_chains

Chains = list[list[float]]


def found_in(draw: random.Random, count: int, noise: float, calls: tuple[float, float]) -> Speedup:
    """One judgement on a CPU: processes differ as stated, pairs and calls of nothing by `noise`."""
    spread = [
        math.hypot(estimates.PROCESS * call, estimates.HANDSHAKE) / estimates.NORMAL
        for call in calls
    ]
    means = [0.1e-3 + draw.gauss(call, each) for call, each in zip(calls, spread, strict=True)]
    pairs = [Pair(*(mean * math.exp(draw.gauss(0, noise)) for mean in means)) for _ in range(count)]
    return speedup_of_calls(pairs, [0.1e-3 * math.exp(draw.gauss(0, noise)) for _ in pairs])


@pytest.mark.parametrize("count", [3, 7, 25])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("calls", [(20e-3, 10e-3), (1e-3, 0.3e-3)])
def test_an_interval_on_a_cpu_covers_as_often_as_it_says(
    count: int, noise: float, calls: tuple[float, float]
) -> None:
    draw, trials = random.Random(1), 1000
    judgements = [found_in(draw, count, noise, calls) for _ in range(trials)]
    truth = calls[0] / calls[1]
    assert 0.93 <= sum(each.low <= truth <= each.high for each in judgements) / trials <= 0.999


def test_calls_within_the_error_of_the_overhead_have_a_wide_interval() -> None:
    """Both were once cut to that error, and their ratio was 1 without any scatter."""
    nulls = [at * 50e-6 for at in range(1, 12)]
    found = speedup_of_calls([Pair(310e-6, 360e-6)] * 12, nulls)
    assert found.noisy and found.low < 0.2 and 0.6 < found.ratio < 0.8


def test_no_pairs_have_no_speedup() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        speedup_of_calls([], [1e-4])


def test_a_speedup_is_the_median_of_paired_ratios_of_what_calls_take_beyond_nothing() -> None:
    sides = (2e-3, 2.1e-3, 1.9e-3, 2.2e-3, 1.8e-3, 2.3e-3, 40e-3) * 3
    pairs = [Pair(reference + 1e-3, 2e-3) for reference in sides]
    found = speedup_of_calls(pairs, [1e-3, 1e-3, 9.0])
    assert found.ratio == pytest.approx(2.1, rel=1e-3) and found.low < 2.0 < 2.2 < found.high
    assert not found.noisy  # those that were disturbed do not show
    assert found.reference == pytest.approx(2.1e-3, rel=1e-3)
    assert found.submission == pytest.approx(1e-3, rel=1e-3)
    wider = max(found.high / found.ratio - 1, 1 - found.low / found.ratio)
    assert found.spread == pytest.approx(wider)


def test_pairs_that_drift_together_give_the_ratio_that_each_of_them_has() -> None:
    found = speedup_of_calls([Pair(3e-1 * by, 1e-1 * by) for by in (1, 2, 4, 8, 16, 32, 64)], [0.0])
    assert found.ratio == pytest.approx(3)
    least = estimates.least_spread_of_calls(found.reference, found.submission)
    assert math.log(found.high / 3) == pytest.approx(least, rel=0.1)


def test_no_call_is_shorter_than_its_overhead_varies() -> None:
    found = speedup_of_calls([Pair(30e-6, -4e-6)] * 6, [0.0])  # it may come out negative
    assert 10e-6 < found.submission < estimates.HANDSHAKE and 2 < found.ratio < 3
    assert found.low < 0.6 * found.ratio
    assert speedup_of_calls([Pair(-1.0, -2.0)] * 6, [0.0]).ratio == 1.0


@pytest.mark.parametrize(("short", "noisy"), [(10e-6, True), (1e-3, False)])
def test_a_call_that_is_hardly_longer_than_nothing_is_noisy_and_not_paid(
    short: float, noisy: bool
) -> None:
    found = speedup_of_calls([Pair(3.1e-3, short + 0.1e-3)] * 7, [0.1e-3] * 7)
    assert found.noisy is noisy and (found.low < 0.8 * found.ratio) is noisy


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
    """Errors of judgements, processes, chains and the constant are as stated; those of links are
    1 us.
    """
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
        between = math.exp(draw.gauss(0, estimates.BETWEEN / estimates.NORMAL))
        found = of_links(drawn(reference * between), drawn(submission), constant)
        hits += found.low <= reference / submission <= found.high
    assert 0.93 <= hits / trials <= 0.975, hits / trials


def test_chains_that_differ_more_than_they_are_said_to_widen_the_interval() -> None:
    draw, trials, hits = random.Random(6), 1000, 0
    for _ in range(trials):
        reference = [chain(200 * US * math.exp(draw.gauss(0, 0.05))) for _ in range(4)]
        found = of_links(reference, [chain(100 * US)] * 4, CONSTANT)
        hits += found.low <= 2.0 <= found.high
    assert hits / trials >= 0.92, hits / trials


@pytest.mark.parametrize(("submission", "noisy"), [(3 * US, True), (20 * US, False)])
def test_the_speedup_of_a_call_that_is_too_short_is_noisy(submission: float, noisy: bool) -> None:
    assert of_links([chain(20 * US)], [chain(submission)], CONSTANT).noisy is noisy
