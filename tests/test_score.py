import math

import pytest
from episodes import correct

from kevin_env.outcome import Correct
from kevin_env.roofline import Roofline
from kevin_env.score import SCORES, discounted_returns, kevin, resolve_score, score_name, score_of


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
    with pytest.raises(ValueError, match=r"gamma is .* within 0 and 1"):
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


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_must_be_a_number(bad) -> None:
    with pytest.raises(ValueError, match=r"gave (nan|inf) for correct/timed"):
        score_of(correct(1.0), lambda _: bad)


NOISY = Correct(kind="too_noisy", message="Correct.", speedup=2.0, speedup_interval=(0.5, 6.0))


@pytest.mark.parametrize(("noisy", "score"), [("lower", 0.8), ("retry", 0.8), ("floor", 0.3)])
def test_a_noisy_speedup_is_paid_by_its_lower_end_or_not(noisy, score: float) -> None:
    assert score_of(NOISY, kevin, noisy=noisy) == pytest.approx(score)
    assert score_of(correct(2.0), kevin, noisy=noisy) == pytest.approx(2.3), (
        "others are paid by their median"
    )


def test_the_fraction_of_the_roofline_goes_with_the_speedup_that_counts() -> None:
    held = Roofline(
        bytes=1, flops=1, seconds=1.0, bound="memory", memory_ceiling=1.0, compute_ceiling=1.0, bandwidth=1.0, rate=1.0,
        fraction=0.8,
    )  # fmt: skip
    noisy = NOISY.model_copy(update={"roofline": held})
    assert score_of(noisy, resolve_score("roofline")) == pytest.approx(0.3 + 0.8 * 0.5 / 2.0)
    assert score_of(noisy, resolve_score("roofline"), noisy="floor") == 0.3
