"""From durations of calls to a speedup with an interval. Pure functions; times in seconds.

A speedup is the median of paired ratios. Its 95 % interval is for the speedup that another
judgement of the same code on the same machine would report. It adds in quadrature

- how the calls of this judgement vary,
- the uncertainty of the constant overhead of a timed call,
- how judgements vary beyond that (`BETWEEN`), since processes differ in memory layout, and machines
  in what else they do.

It says nothing about other machines.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kevin_env.judge.workers.usage import Ran

NOISY = 0.25
"""A speedup is noisy if its interval is wider than this, relative to it, on either side."""
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
"""The 97.5 % quantile of Student's t, by the number of pairs."""
NORMAL = 1.96
"""The 97.5 % quantile of the normal distribution."""
LEAST = 6
"""The least number of pairs when time is short."""
MAD, MANY = 1.4826, 3.5
"""For normal values: the standard deviation over the median absolute deviation; and half of the 95
% interval of their median, times the root of their number, over the standard deviation. The latter
is 1.25 times 1.96, and more because the deviation is estimated from few values.
"""
BETWEEN = {"cpu": 0.2, "cuda": 0.012}
"""Half of the 95 % interval by which the logarithm of a speedup varies between judgements, beyond
the variation within one of them. On a CPU it holds for calls much longer than their overhead.

On an H100 speedups of large kernels were within 1.4 % of those by events in their own process,
where no context switches. On a quiet CPU with two processors, eight judgements of a reference
against itself in one pool varied by 4 to 10 % (standard deviation), and as much between pools,
since memory is placed differently each time.
"""
CROWDED, BETWEEN_CROWDED = 0.8, 0.4
"""`BETWEEN` if timed processes wait for a processor for more than the first share of the time they
run.

The share was 1.2 to 2.1 at a load of 5 to 7 on two processors. Of 57 judgements of two references
against themselves, next to judges and tests on two processors, logarithms varied by 0.16 to 0.45:
one side may have both threads on one processor.
"""
RESOLUTION = 1e-6
"""The shortest duration of a call."""
CHAIN_ERROR, PROCESS_ERROR, CONSTANT_ERROR = 0.5e-6, 0.7e-6, 1e-6
"""Standard deviations: between chains of one process; of a call in one process from what events
show in others; of a link's constant, which affects both sides alike.
"""
FEW_LINKS, LINK_ERROR = 4, 3e-3
"""With fewer links per side their scatter is unknown, and taken to be this share of a call."""
OF_LOWER_HALF, OF_QUARTILE = 2.6, 1.36
"""For normal values: the standard deviation over the mean deviation of the lower half from the
lower quartile, and the standard error of that quartile, times the root of their number, over the
standard deviation.
"""


@dataclass(frozen=True)
class Pair:
    """One measurement of both sides by the same protocol, one right after the other."""

    reference: float
    submission: float

    @property
    def ratio(self) -> float:
        """Reference time over submission time."""
        return max(self.reference, RESOLUTION) / max(self.submission, RESOLUTION)


@dataclass(frozen=True)
class Speedup:
    """The median of paired ratios with its interval, and the median times of both sides."""

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
        """With an interval that also covers variation between judgements, as `BETWEEN` gives it."""
        low, high = (
            math.hypot(math.log(self.ratio / end), between) for end in (self.low, self.high)
        )
        return replace(self, low=self.ratio * math.exp(-low), high=self.ratio * math.exp(high))


def resolution_of(overheads: Sequence[float]) -> float:
    """The shortest call that can be distinguished from none: the error of the overhead."""
    return max(RESOLUTION, _scatter(overheads) / math.sqrt(len(overheads)))


def widened_on_cpu(speedup: Speedup, overhead: float, resolution: float, share: float) -> Speedup:
    """With an interval that also covers variation between judgements on a CPU.

    What varies is a whole measurement, overhead included, which for short calls is most of it.

    Args:
        speedup: Of calls, from which the overhead has been subtracted.
        overhead: Of a call.
        resolution: The shortest duration of a call.
        share: As `BETWEEN`, which is for both sides together.
    """
    reference, own = speedup.reference, speedup.submission
    by = [share * (call + overhead) / math.sqrt(2) for call in (reference, own)]
    down = (reference / max(reference - by[0], resolution), (own + by[1]) / own)
    up = ((reference + by[0]) / reference, own / max(own - by[1], resolution))
    low = math.hypot(math.log(speedup.ratio / speedup.low), *map(math.log, down))
    high = math.hypot(math.log(speedup.high / speedup.ratio), *map(math.log, up))
    ratio = speedup.ratio
    return replace(speedup, low=ratio * math.exp(-low), high=ratio * math.exp(high))


def between(before: Ran, after: Ran) -> float:
    """`BETWEEN` on a CPU, by how long the timed processes ran and waited between two moments."""
    crowded = after.waited - before.waited > CROWDED * (after.ran - before.ran)
    return BETWEEN_CROWDED if crowded else BETWEEN["cpu"]


def speedup_of(pairs: Sequence[Pair]) -> Speedup:
    """The speedup of these pairs, with the interval of this judgement alone.

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
    """Half of the interval of the median of logarithms that are normal; 0 for a single one."""
    if len(logs) in STUDENT:
        return STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return MANY * _scatter(logs) / math.sqrt(len(logs))


def _scatter(values: Sequence[float]) -> float:
    """The standard deviation of normal values, by their median absolute deviation."""
    middle = statistics.median(values)
    return MAD * statistics.median(abs(value - middle) for value in values)


def lower_quartile(values: Sequence[float]) -> float:
    """The time reported for some links; disturbances only lengthen one. Of four it is the least."""
    return sorted(values)[(len(values) - 1) // 4]


def counted(calls: Sequence[float]) -> Sequence[float]:
    """The calls of a chain without the first, if there are more than two."""
    return calls[1:] if len(calls) > 2 else calls


def call_of(calls: Sequence[float]) -> float:
    """The duration of a call that a chain reports."""
    return max(lower_quartile(counted(calls)), RESOLUTION)


def speedup_of_chains(
    reference: Sequence[Sequence[float]], submission: Sequence[Sequence[float]]
) -> Speedup:
    """The speedup of pairs of chains, with the interval of this judgement alone.

    Args:
        reference: The calls of each of its chains: links minus their constant.
        submission: The same for the submission, pair by pair.

    Raises:
        ValueError: without chains.
    """
    pairs = [Pair(*map(call_of, chains)) for chains in zip(reference, submission, strict=True)]
    if not pairs:
        raise ValueError("no chains")
    sides = (
        statistics.median(p.reference for p in pairs),
        statistics.median(p.submission for p in pairs),
    )
    own = [
        math.hypot(_error(chains, call), PROCESS_ERROR) / call
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
    """The least spread that any number of chains can reach for calls of such durations, roughly."""
    return math.hypot(
        NORMAL * CONSTANT_ERROR * (1 / reference - 1 / submission),
        NORMAL * PROCESS_ERROR / reference,
        NORMAL * PROCESS_ERROR / submission,
        BETWEEN["cuda"],
    )


def _error(chains: Sequence[Sequence[float]], call: float) -> float:
    """The standard error of a call by the lower quartiles of chains."""
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
    """The mean deviation of a chain's shorter half from its lower quartile.

    Disturbed links do not affect it.
    """
    links = sorted(counted(chain))
    quartile = lower_quartile(links)
    return statistics.mean(abs(link - quartile) for link in links[: (len(links) + 1) // 2])


def _speedup(pairs: Sequence[Pair], low: float, high: float) -> Speedup:
    return Speedup(
        statistics.median(pair.ratio for pair in pairs),
        low,
        high,
        max(statistics.median(pair.reference for pair in pairs), RESOLUTION),
        max(statistics.median(pair.submission for pair in pairs), RESOLUTION),
    )
