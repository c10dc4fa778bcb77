"""From times of calls to a speedup with an interval. Pure: no clock, no tensors. All times in
seconds.

A speedup is the median of paired ratios. Its 95 % interval is for the speedup that another
judgement of the same code on the same machine would tell. It joins, in quadrature, how calls of
this judgement vary, what the constant cost of a timed call is uncertain by, and how judgements vary
beyond that (`BETWEEN`), since processes differ in where their memory lies and machines in what else
they do. It says nothing of other machines.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kevin_env.judge.workers.patience import Ran

NOISY = 0.25
"""A speedup whose interval is wider than this on either side, relative to it, is noisy."""
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
"""The 97.5 % quantile of Student's t with one degree of freedom less than pairs."""
NORMAL = 1.96
"""The same of a normal distribution."""
LEAST = 6
"""Pairs that there are at least when time is short."""
MAD, MANY = 1.4826, 3.5
"""Of normal values: the standard deviation over the median deviation from the median; and half of a
95 % interval of their median times the root of their number, over that deviation: 1.25 times 1.96,
and more as few tell it.
"""
BETWEEN = {"cpu": 0.2, "cuda": 0.012}
"""Half of the 95 % interval by which the logarithm of a speedup varies between judgements beyond
what one of them shows, by device. On an H100 speedups of large kernels were up to 1.4 % from those
by events in their own process, where no context changes. On a quiet CPU with two processors eight
judgements of a reference against itself in one pool varied by 4 to 10 % (standard deviation), and
by as much from pool to pool, since memory is placed differently each time.
"""
CROWDED, BETWEEN_CROWDED = 0.8, 0.4
"""The same where processes that are timed wait for a processor for more than that share of what
they run (1.2 to 2.1 at a load of 5 to 7 on two processors). Of 57 judgements of two references
against themselves, beside judges and tests on two processors, logarithms varied by 0.16 to 0.45:
one side may have both threads on one processor.
"""
RESOLUTION = 1e-6
"""No call is taken to be shorter than this."""
CHAIN_ERROR, CONSTANT_ERROR = 0.5e-6, 1e-6
"""Standard deviations of what a chain tells from another one's of the same process, and of a link's
constant.
"""
FEW_LINKS, LINK_ERROR = 4, 3e-3
"""With fewer links of a side their scatter is not known, and taken to be this share of a call."""
OF_LOWER_HALF, OF_QUARTILE = 2.6, 1.36
"""Of normal values: the standard deviation over the mean deviation of the lower half from the lower
quartile, and the standard error of that quartile times the root of their number, over the standard
deviation.
"""


@dataclass(frozen=True)
class Pair:
    """One measurement of both sides under the same protocol, taken one right after the other."""

    reference: float
    submission: float

    @property
    def ratio(self) -> float:
        """Reference time over submission time."""
        return max(self.reference, RESOLUTION) / max(self.submission, RESOLUTION)


@dataclass(frozen=True)
class Speedup:
    """The median of paired ratios with its confidence interval, and both sides' median times."""

    ratio: float
    low: float
    high: float
    reference: float
    submission: float

    @property
    def noisy(self) -> bool:
        """Whether its interval is wide."""
        return self.spread > NOISY

    @property
    def spread(self) -> float:
        """The wider side of the interval, relative to the ratio."""
        return max(self.high - self.ratio, self.ratio - self.low) / self.ratio

    def widened(self, between: float) -> "Speedup":
        """With an interval that covers variation between judgements too, of which half is `between`
        (`BETWEEN`).
        """
        low, high = (
            math.hypot(math.log(self.ratio / end), between) for end in (self.low, self.high)
        )
        return replace(self, low=self.ratio * math.exp(-low), high=self.ratio * math.exp(high))


def between(before: Ran, after: Ran) -> float:
    """`BETWEEN` on a CPU, by what the processes that are timed ran and waited from one moment to
    another.
    """
    crowded = after.waited - before.waited > CROWDED * (after.ran - before.ran)
    return BETWEEN_CROWDED if crowded else BETWEEN["cpu"]


def speedup_of(pairs: Sequence[Pair]) -> Speedup:
    """The speedup that the pairs show, with the interval of this judgement alone.

    Raises:
        ValueError: without pairs.
    """
    if not pairs:
        raise ValueError("no pairs")
    middle, half = (
        statistics.median(pair.ratio for pair in pairs),
        _half([math.log(pair.ratio) for pair in pairs]),
    )
    return _speedup(pairs, middle * math.exp(-half), middle * math.exp(half))


def _half(logs: Sequence[float]) -> float:
    """Half of an interval of the median of some logarithms, as far as they are normal; 0 for a
    single one.
    """
    if len(logs) in STUDENT:
        return STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.median(logs)
    scatter = MAD * statistics.median(abs(log - middle) for log in logs)
    return MANY * scatter / math.sqrt(len(logs))


def lower_quartile(values: Sequence[float]) -> float:
    """The time reported for some links. Disturbances only lengthen a link. Of up to four it is the
    shortest.
    """
    return sorted(values)[(len(values) - 1) // 4]


def counted(calls: Sequence[float]) -> Sequence[float]:
    """The calls of a chain without the first, if there are more than two."""
    return calls[1:] if len(calls) > 2 else calls


def call_of(calls: Sequence[float]) -> float:
    """The time of a call that a chain reports."""
    return max(lower_quartile(counted(calls)), RESOLUTION)


def speedup_of_chains(
    reference: Sequence[Sequence[float]], submission: Sequence[Sequence[float]]
) -> Speedup:
    """The speedup that pairs of chains show, with the interval of this judgement alone.

    Args:
        reference: The calls of each of its chains: links less what they have besides the call.
        submission: The same of the submission, pair by pair.

    Raises:
        ValueError: without chains.
    """
    pairs = [
        Pair(call_of(ours), call_of(theirs))
        for ours, theirs in zip(reference, submission, strict=True)
    ]
    if not pairs:
        raise ValueError("no chains")
    sides = (
        statistics.median(p.reference for p in pairs),
        statistics.median(p.submission for p in pairs),
    )
    own = [
        _error(chains, call) / call
        for chains, call in zip((reference, submission), sides, strict=True)
    ]
    half = NORMAL * math.hypot(*own, CONSTANT_ERROR * (1 / sides[0] - 1 / sides[1]))
    if len(pairs) > 2:
        logs = [math.log(pair.ratio) for pair in pairs]
        half = max(
            half, STUDENT.get(len(pairs), NORMAL) * statistics.stdev(logs) / math.sqrt(len(pairs))
        )
    middle = statistics.median(pair.ratio for pair in pairs)
    return _speedup(pairs, middle * math.exp(-half), middle * math.exp(half))


def least_spread(reference: float, submission: float) -> float:
    """About the least spread that any number of chains comes to, for calls of such lengths."""
    return math.hypot(NORMAL * CONSTANT_ERROR * (1 / reference - 1 / submission), BETWEEN["cuda"])


def _error(chains: Sequence[Sequence[float]], call: float) -> float:
    """The standard error of a call by the lower quartiles of some chains: of links within each, and
    of chains.
    """
    count = sum(len(counted(chain)) for chain in chains)
    scatter = (
        LINK_ERROR * call
        if count < FEW_LINKS
        else OF_LOWER_HALF * statistics.mean(map(_deviation, chains))
    )
    return math.hypot(
        OF_QUARTILE * scatter / math.sqrt(count), CHAIN_ERROR / math.sqrt(len(chains))
    )


def _deviation(chain: Sequence[float]) -> float:
    """The mean deviation of a chain's shorter half from its lower quartile, which disturbed links
    do not affect.
    """
    links = sorted(counted(chain))
    told = lower_quartile(links)
    return statistics.mean(abs(link - told) for link in links[: (len(links) + 1) // 2])


def _speedup(pairs: Sequence[Pair], low: float, high: float) -> Speedup:
    return Speedup(
        statistics.median(pair.ratio for pair in pairs),
        low,
        high,
        max(statistics.median(pair.reference for pair in pairs), RESOLUTION),
        max(statistics.median(pair.submission for pair in pairs), RESOLUTION),
    )
