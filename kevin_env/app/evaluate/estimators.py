"""Estimates from few samples: pass@k, best@k and bootstrap intervals of means over problems."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

SEED = 0
"""Of the bootstrap."""
RESAMPLES = 1000
"""Bootstrap draws per interval."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of `k` samples is correct: 1 - C(n-c, k) / C(n, k).

    Unbiased (Chen et al., arXiv 2107.03374, eq. 1), computed from exact integers.

    Args:
        n: samples.
        c: correct samples.
        k: samples drawn.

    Raises:
        ValueError: if not 0 <= c <= n and 1 <= k <= n.
    """
    _require_k(n, k)
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot be correct")
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def best_at_k(values: Sequence[float], k: int) -> float:
    """The expected maximum of `k` of the values: the sum over i of C(i-1, k-1) / C(n, k) v_(i).

    Unbiased: v_(i), the i-th in ascending order, is the largest in C(i-1, k-1) of the C(n, k)
    subsets. For values 0 and 1 this is pass@k.

    Raises:
        ValueError: if not 1 <= k <= len(values).
    """
    _require_k(len(values), k)
    return float(_weights(len(values), k) @ np.sort(values)[::-1])


def interval(
    values: Sequence[float | None], seed: int = SEED, count: int = RESAMPLES
) -> tuple[float, float] | None:
    """95 % percentile bootstrap interval of the mean of one value per problem; None below two.

    Problems whose value is None are drawn, but do not enter the means. Equal numbers of problems
    share their draws.

    Args:
        values: one per problem.
        seed: of the draws.
        count: number of draws, each with replacement.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    times = _times_drawn(len(values), seed, count)
    sums = times @ np.array([value or 0.0 for value in values])
    drawn = times @ np.array([value is not None for value in values], np.float64)
    ends = np.percentile(sums[drawn > 0] / drawn[drawn > 0], (2.5, 97.5))
    # A mean lies within its values, unless it was rounded.
    low, high = np.clip(ends, min(known), max(known))
    return float(low), float(high)


@lru_cache(maxsize=32)
def _times_drawn(problems: int, seed: int, count: int) -> npt.NDArray[np.float64]:
    """How often each problem is in each draw; shape (count, problems)."""
    even = np.full(problems, 1 / problems)
    return np.random.default_rng(seed).multinomial(problems, even, count).astype(np.float64)


def _weights(n: int, k: int) -> npt.NDArray[np.float64]:
    """Of the largest value first; C(i-2, k-1) / C(i-1, k-1) is (i-k) / (i-1)."""
    i = np.arange(n, 1, -1)
    return k / n * np.concatenate(([1.0], np.cumprod(np.maximum(i - k, 0) / (i - 1))))


def _require_k(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}; it must be between 1 and the number of samples, {n}")
