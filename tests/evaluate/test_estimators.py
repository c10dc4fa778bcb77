"""Estimators against counting by hand, the formula of Chen et al., and known intervals."""

import itertools
import math
import random
from statistics import fmean

import pytest

from kevin_env.app.evaluate.estimators import best_at_k, interval, pass_at_k


def test_pass_at_k_by_hand() -> None:
    # 3 samples, 1 correct: one drawn 1/3; two drawn, two of the three pairs hold it; three always.
    assert [pass_at_k(3, 1, k) for k in (1, 2, 3)] == [1 / 3, 2 / 3, 1]
    # 10 samples, 3 correct, 5 drawn: 1 - C(7, 5) / C(10, 5) = 1 - 21 / 252 = 11 / 12.
    assert pass_at_k(10, 3, 5) == 11 / 12
    assert (pass_at_k(4, 0, 4), pass_at_k(4, 4, 1)) == (0, 1)
    # 1 - C(1999, 1) / C(2000, 1) is 1 / 2000; a difference of floats would lose digits.
    assert pass_at_k(2000, 1, 1) == 1 / 2000


@pytest.mark.parametrize("k", range(1, 7))
def test_best_at_k_is_the_mean_over_every_choice(k: int) -> None:
    values = [0.0, 0.0, 0.7, 1.1, 1.1, 2.5]
    choices = [max(choice) for choice in itertools.combinations(values, k)]
    assert best_at_k(values, k) == pytest.approx(sum(choices) / len(choices))


def test_best_at_k_of_zeros_and_ones_is_pass_at_k() -> None:
    for right, k in itertools.product(range(9), range(1, 9)):
        values = [1.0] * right + [0.0] * (8 - right)
        assert best_at_k(values, k) == pytest.approx(pass_at_k(8, right, k), abs=1e-12)


def test_best_at_k_of_many_samples() -> None:
    # Weights contain integers of 75 digits.
    assert best_at_k([1.5] * 256, 128) == pytest.approx(1.5)
    rising = [best_at_k([float(value) for value in range(256)], k) for k in (1, 2, 16, 128, 256)]
    assert rising == sorted(rising)
    assert rising[0] == pytest.approx(127.5)
    assert rising[-1] == 255


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_must_lie_within_the_samples(k: int) -> None:
    for estimate in (lambda: pass_at_k(3, 1, k), lambda: best_at_k([1.0, 2.0, 3.0], k)):
        with pytest.raises(ValueError, match="number of samples, 3"):
            estimate()


def test_more_right_than_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="4 of 3"):
        pass_at_k(3, 4, 1)


def test_interval_of_two_problems() -> None:
    # Two draws of {0, 1}: the mean is 0, 0.5 or 1 with probabilities 1/4, 1/2, 1/4.
    assert interval([0.0, 1.0]) == (0, 1)


def test_interval_is_about_two_standard_errors() -> None:
    numbers = random.Random(0)
    values = [numbers.gauss(1, 1) for _ in range(200)]
    mean = fmean(values)
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / 200) / math.sqrt(200)
    low, high = interval(values, seed=1) or (0, 0)
    assert low == pytest.approx(mean - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.15 * error)


def test_interval_covers_the_truth_in_95_percent() -> None:
    numbers = random.Random(3)
    covered = 0
    for _ in range(300):
        sample = [float(numbers.random() < 0.3) for _ in range(60)]
        low, high = interval(sample, seed=2, count=400) or (1, 0)
        covered += low <= 0.3 <= high
    assert 0.90 <= covered / 300 <= 0.98


def test_interval_is_drawn_from_the_seed() -> None:
    values = [0.1, 0.5, 2.0, 3.5, 0.0, 1.1, 0.7]
    assert interval(values, seed=4) == interval(values, seed=4)
    assert interval(values, seed=4) != interval(values, seed=5)


def test_interval_ignores_unknown_values() -> None:
    assert interval([1.0, None, 1.0, None]) == (1, 1)
    low, high = interval([0.0, None, 1.0, None]) or (None, None)
    assert (low, high) == (0, 1)


def test_one_value_has_no_interval() -> None:
    assert interval([1.0]) is None
    assert interval([None, 1.0, None]) is None


def test_interval_of_equal_values_is_that_value() -> None:
    # Sums of seven times 0.3 are not all seven times 0.3.
    assert interval([0.3] * 7) == (0.3, 0.3)
