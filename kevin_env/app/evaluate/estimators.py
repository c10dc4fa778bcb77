"""Estimates from few samples: pass@k, best@k, and how far a mean over problems may be off. Numbers
only.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

RESAMPLES = 1000
"""How often problems are drawn anew for an interval."""

_PERCENTILES = (2.5, 97.5)


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of `k` samples is right, where `c` of `n` are: 1 - C(n-c, k) /
    C(n, k).

    Unbiased (Chen et al., arXiv 2107.03374, eq. 1), from exact integers.

    Raises:
        ValueError: if not 0 <= c <= n and 1 <= k <= n.
    """
    _require_k(n, k)
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot be right")
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def best_at_k(values: Sequence[float], k: int) -> float:
    """The expected largest of `k` of these values: the sum over i of C(i-1, k-1) / C(n, k) v_(i),
    sorted upwards.

    Unbiased: of all C(n, k) choices, v_(i) is the largest in C(i-1, k-1). For 0 and 1 this is
    pass@k.

    Raises:
        ValueError: if not 1 <= k <= len(values).
    """
    _require_k(len(values), k)
    return math.fsum(
        weight * value
        for weight, value in zip(_weights(len(values), k), sorted(values), strict=True)
    )


def avg_at_k(values: Sequence[float]) -> float:
    """The expected mean of k of these values, which for every k is the mean of all.

    Raises:
        ValueError: if there is none.
    """
    if not values:
        raise ValueError("no values, no mean")
    return math.fsum(values) / len(values)


class Resamples:
    """Percentile bootstrap over problems; every figure of a group sees the same draws.

    Args:
        problems: how many there are.
        seed: the same seed draws the same.
        count: how often they are drawn anew, with replacement.
    """

    def __init__(self, problems: int, seed: int, count: int = RESAMPLES) -> None:
        drawn = np.random.default_rng(seed).multinomial(
            problems, np.full(problems, 1 / problems), count
        )
        # How often each problem is in each draw; shape (count, problems).
        self._times: npt.NDArray[np.float64] = drawn.astype(np.float64)

    def interval(self, values: Sequence[float | None]) -> tuple[float, float] | None:
        """95 % interval of the mean of one value a problem; None for fewer than two values.

        Problems without a value (None) stay in the draws and out of the means.
        """
        known = [value for value in values if value is not None]
        if len(known) < 2:
            return None
        sums = self._times @ np.array([value or 0.0 for value in values])
        drawn = self._times @ np.array([value is not None for value in values], np.float64)
        ends = np.percentile(sums[drawn > 0] / drawn[drawn > 0], _PERCENTILES)
        # No mean lies outside its values; a rounded one might.
        low, high = np.clip(ends, min(known), max(known))
        return float(low), float(high)


@cache
def _weights(n: int, k: int) -> tuple[float, ...]:
    every = math.comb(n, k)
    return tuple(math.comb(i - 1, k - 1) / every for i in range(1, n + 1))


def _require_k(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}; it must lie within 1 and the number of samples, {n}")
