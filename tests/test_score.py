import math
import random
import re
from itertools import pairwise

import pytest
from episodes import correct

from kevin_env.judge.timing.estimates import (
    RESOLUTION,
    Pair,
    least_spread,
    outcome_of,
    speedup_of_calls,
    speedup_of_chains,
)
from kevin_env.outcome import NOISY as NOISY_FROM
from kevin_env.outcome import Correct, Outcome
from kevin_env.roofline import Roofline
from kevin_env.score import (
    SCORES,
    at_bound,
    discounted_returns,
    kevin,
    resolve_score,
    score_name,
    score_of,
)


def test_returns_follow_their_definition() -> None:
    scores, gamma = [0.3, 2.0, 0.0, 5.0, 0.1], 0.7
    terms = [
        [gamma ** (i - t) * scores[i] for i in range(t, len(scores))] for t in range(len(scores))
    ]
    assert discounted_returns(scores, gamma, "sum") == pytest.approx([sum(each) for each in terms])
    assert discounted_returns(scores, gamma, "max") == pytest.approx([max(each) for each in terms])


@pytest.mark.parametrize("how", ["sum", "max"])
def test_negative_scores_keep_their_sign(how) -> None:
    assert discounted_returns([-1.0], 0.4, how) == (-1.0,)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_gamma_outside_its_range_is_refused(gamma) -> None:
    with pytest.raises(ValueError, match=r"gamma is .* between 0 and 1"):
        discounted_returns([1.0], gamma)


def test_unknown_words_are_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="'sum' or 'max'"):
        discounted_returns([1.0], 0.4, "mean")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="unknown score 'fast': give one of kevin"):
        resolve_score("fast")


def half(outcome) -> float:
    return 0.5


def test_a_function_is_a_score_and_has_a_name() -> None:
    assert resolve_score(half) is half
    assert score_name(half) == "test_score.half"
    assert score_name(kevin) == "kevin"
    assert resolve_score(score_name(kevin)) is SCORES["kevin"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "1.5", [1, 2]])
def test_a_score_must_be_a_number(bad) -> None:
    expected = rf"gave {re.escape(repr(bad))} for correct/timed, not a finite number"
    with pytest.raises(ValueError, match=expected):
        score_of(correct(1.0), lambda _: bad)


NOISY = Correct(kind="too_noisy", message="Correct.", speedup=2.0, speedup_interval=(0.5, 6.0))


def test_of_a_speedup_the_median_counts_up_to_a_quarter_above_its_lower_end() -> None:
    assert score_of(NOISY, kevin) == pytest.approx(0.3 + 1.25 * 0.5)
    assert score_of(correct(2.0), kevin) == pytest.approx(2.3)
    assert score_of(NOISY, kevin, "lower") == pytest.approx(0.8)


REFERENCES = [5e-6, 50e-6, 100e-6, 200e-6, 3e-3]


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("clock", ["chains", "calls"])
def test_a_faster_kernel_is_paid_more_and_by_no_leap(reference: float, clock: str) -> None:
    paid = [kevin(at_bound(timed(clock, reference, call))) for call in faster_and_faster(reference)]
    assert all(0 < later / sooner - 1 < 0.03 for sooner, later in pairwise(paid))


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("noise", [0.05, 0.22, 0.23, 1.0])
def test_that_holds_beside_any_noise_and_more_noise_pays_less(
    reference: float, noise: float
) -> None:
    def paid(call: float, noise: float) -> float:
        half, ratio = math.hypot(noise, least_spread(reference, call)), reference / call
        interval = (ratio / (1 + half), ratio * (1 + half))
        kind = "too_noisy" if half > NOISY_FROM else "timed"
        return kevin(
            at_bound(Correct(kind=kind, message="", speedup=ratio, speedup_interval=interval))
        )

    scores = [paid(call, noise) for call in faster_and_faster(reference)]
    assert all(0 < later / sooner - 1 < 0.03 for sooner, later in pairwise(scores))
    wider = [paid(reference / 3, noise * by) for by in (1, 2, 4, 8)]
    assert all(sooner >= later > 0.3 for sooner, later in pairwise(wider)) and wider[0] > wider[-1]


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("jitter", [1e-6, 5e-6])
def test_that_holds_on_a_cpu_whose_jitter_does_not_shrink_with_the_call(
    reference: float, jitter: float
) -> None:
    for seed in range(20):
        late = random.Random(seed)
        by = [(abs(late.gauss(0, jitter)), abs(late.gauss(0, jitter))) for _ in range(6)]
        scores = [
            kevin(at_bound(outcome_of(speedup_of_calls(pairs, [0.0] * 6), "PyTorch eager")))
            for call in faster_and_faster(reference)
            for pairs in [[Pair(reference + a, call + b) for a, b in by]]
        ]
        assert all(sooner <= later for sooner, later in pairwise(scores)), seed


def faster_and_faster(reference: float) -> list[float]:
    """Seconds of a call, from twice the reference's to the shortest there is."""
    calls = [2 * reference * 0.98**step for step in range(500)]
    return [call for call in calls if call >= RESOLUTION]


def timed(clock: str, reference: float, call: float) -> Outcome:
    if clock == "chains":
        return outcome_of(speedup_of_chains([[reference] * 6], [[call] * 6]), "PyTorch eager")
    return outcome_of(speedup_of_calls([Pair(reference, call)] * 21, [0.0] * 21), "PyTorch eager")


def test_the_fraction_of_the_roofline_goes_with_the_speedup_that_counts() -> None:
    held = Roofline(
        bytes=1, flops=1, seconds=1.0, bound="memory", memory_ceiling=1.0, compute_ceiling=1.0, bandwidth=1.0, rate=1.0,
        fraction=0.8,
    )  # fmt: skip
    noisy = NOISY.model_copy(update={"roofline": held})
    assert score_of(noisy, resolve_score("roofline")) == pytest.approx(0.3 + 0.8 * 0.625 / 2.0)
