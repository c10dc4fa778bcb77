"""From durations of calls to a speedup with an interval. Pure functions; times in seconds.

A speedup is the median of paired ratios. Its 95 % interval is for the median speedup of many
judgements of the same code on the same machine, each in processes of its own. It says nothing about
other machines. It adds in quadrature

- how the calls of this judgement vary,
- how judgements vary beyond that, since processes differ in memory layout (`BETWEEN`, `PROCESS`),
- on a GPU, the uncertainty of the constant overhead of a timed call.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kevin_env.judge.api import Pace
from kevin_env.outcome import NOISY, Correct

STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
"""The 97.5 % quantile of Student's t, by the number of samples."""
NORMAL = 1.96
"""The 97.5 % quantile of the normal distribution."""
LEAST = 6
"""The least number of pairs when time is short."""
BETWEEN = 0.012
"""Half of the 95 % interval by which the logarithm of a speedup on a GPU varies between judgements,
beyond the variation within one of them.

On an H100 speedups of large kernels were within 1.4 % of those by events in their own process,
where no context switches.
"""
PROCESS, HANDSHAKE = 0.06, 15e-6
"""Half of the 95 % interval by which a call on a CPU varies between processes: a share of the call,
and seconds of its overhead.
"""
BLOCK, BLOCKS = 3, 7
"""Pairs on a CPU that are one sample of their scatter, and the least number of samples for that.

Pairs that follow one another are disturbed alike, and single ones by much more than lasts.
"""
CROWD, MANY = 0.6, 2.3
"""On a CPU, half of 95 % intervals over the standard deviation of a judgement's samples.

The first is for how judgements vary with what else runs and where threads are placed, which more
pairs do not narrow. The second, over the root of their number, is Student's for 7 to 16 samples.
"""
STUDY = 8
"""Factor on the most pairs and seconds if a precision is requested."""
NEARLY, STUDY_NEARLY = 1.5, 1.25
"""Factor on the least spread below which more pairs hardly help; the second for a set precision."""
SLOW = 10
"""A submission that is certainly slower by this factor is not measured more precisely."""
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


def speedup_of_calls(pairs: Sequence[Pair], nulls: Sequence[float]) -> Speedup:
    """The speedup of alternating calls on a CPU.

    Args:
        pairs: Seconds of a call of each side, one right after the other.
        nulls: Seconds of calls that do nothing: their median is the overhead of any call.

    Raises:
        ValueError: without pairs or calls of nothing.
    """
    if not pairs or not nulls:
        raise ValueError("no pairs")
    overhead = statistics.median(nulls)
    apart = statistics.median(abs(null - overhead) for null in nulls)
    error = 1.5 * apart / math.sqrt(len(nulls))  # of the overhead
    net = [
        Pair(_beyond(overhead, pair.reference, error), _beyond(overhead, pair.submission, error))
        for pair in pairs
    ]
    ratio, within = statistics.median(p.ratio for p in net), _half([math.log(p.ratio) for p in net])
    reference = statistics.median(pair.reference for pair in net)
    own = statistics.median(pair.submission for pair in net)
    by = [math.hypot(_between(call), error) for call in (reference, own)]
    low = math.hypot(
        within, math.log(reference / max(reference - by[0], RESOLUTION)), math.log(1 + by[1] / own)
    )
    high = math.hypot(
        within, math.log(1 + by[0] / reference), math.log(own / max(own - by[1], RESOLUTION))
    )
    # as for chains: exp(-low) would fall with the speed of the shortest calls
    return Speedup(ratio, ratio / (1 + low), ratio * math.exp(high), reference, own)


def least_spread_of_calls(reference: float, submission: float) -> float:
    """The least spread that any number of calls of such durations can reach on a CPU, roughly."""
    return math.hypot(*(_between(call) / call for call in (reference, submission)))


def _beyond(overhead: float, call: float, error: float) -> float:
    """What a call takes beyond an overhead with that error: never 0, and always less if faster."""
    return (call - overhead + math.hypot(call - overhead, 2 * HANDSHAKE, 2 * error)) / 2


def _between(call: float) -> float:
    """Half of the interval in seconds by which a call varies between processes on a CPU."""
    return math.hypot(PROCESS * call, HANDSHAKE)


def _half(logs: Sequence[float]) -> float:
    """Half of the interval of logarithms within a judgement; 0 for a single one."""
    samples = logs
    if len(logs) >= BLOCK * BLOCKS:
        starts = range(0, len(logs) - BLOCK + 1, BLOCK)
        samples = [statistics.median(logs[start : start + BLOCK]) for start in starts]
    if len(samples) < 2:
        return 0.0
    sampled = STUDENT.get(len(samples), MANY) / math.sqrt(len(samples))
    return statistics.stdev(samples) * math.hypot(sampled, CROWD)


def lower_quartile(values: Sequence[float]) -> float:
    """The time reported for some links; disturbances only lengthen one. Of four it is the least."""
    return sorted(values)[(len(values) - 1) // 4]


def constant_of_chain(null: Sequence[float], usual: float) -> float:
    """The constant of a link in one chain, by the null model's links in it.

    It is the usual one, unless kernels that run on after a call have lengthened all of its links.
    """
    own = lower_quartile(null)
    return own if own > usual + CONSTANT_ERROR else usual


def counted(calls: Sequence[float]) -> Sequence[float]:
    """The calls of a chain without the first, if there are more than two."""
    return calls[1:] if len(calls) > 2 else calls


def call_of(calls: Sequence[float]) -> float:
    """The duration of a call that a chain reports."""
    return max(lower_quartile(counted(calls)), RESOLUTION)


def speedup_of_chains(
    reference: Sequence[Sequence[float]], submission: Sequence[Sequence[float]]
) -> Speedup:
    """The speedup of pairs of chains on a GPU.

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
    half = math.hypot(half, BETWEEN)
    ratio = statistics.median(pair.ratio for pair in pairs)
    # of the shortest calls, a time that is longer by `half`; exp(-half) would fall with their speed
    return Speedup(ratio, ratio / (1 + half), ratio * math.exp(half), *sides)


def least_spread(reference: float, submission: float) -> float:
    """The least spread that any number of chains can reach for calls of such durations, roughly."""
    return math.hypot(
        NORMAL * CONSTANT_ERROR * (1 / reference - 1 / submission),
        NORMAL * PROCESS_ERROR / reference,
        NORMAL * PROCESS_ERROR / submission,
        BETWEEN,
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


def enough(
    speedup: Speedup, reachable: float, pairs: int, seconds: float, pace: Pace,
    requested: float | None,
) -> bool:  # fmt: skip
    """Whether no further pair is needed.

    Args:
        speedup: By the pairs so far.
        reachable: The least spread that is possible.
        pairs: Their number.
        seconds: Since the first one.
        pace: Bounds of both.
        requested: The precision that was asked for, if any.
    """
    times = STUDY if requested else 1
    least, most = pace.pairs[0], times * pace.pairs[1]
    if pairs >= most or speedup.high < 1 / SLOW:
        return pairs >= min(least, 2)
    nearly = STUDY_NEARLY if requested else NEARLY
    wanted = max(requested or pace.precision, nearly * reachable)
    precise = pairs >= least and speedup.spread <= wanted
    late = seconds > times * pace.seconds
    return precise or (pairs >= min(least, LEAST) and late)


def outcome_of(speedup: Speedup, baseline: str, queued: bool = False) -> Correct:
    """The outcome for a speedup over a baseline; its interval covers other judgements, too."""
    text = f"{speedup.ratio:.3g}x the speed of the baseline ({baseline})"
    if speedup.noisy:
        text = f"the time was noisy: about {text}, {speedup.low:.2g}x to {speedup.high:.2g}x"
    return Correct(
        kind="too_noisy" if speedup.noisy else "timed",
        message=f"all outputs are right; {text}",
        speedup=speedup.ratio,
        speedup_interval=(speedup.low, speedup.high),
        reference_seconds=speedup.reference,
        submission_seconds=speedup.submission,
        queued=queued,
    )
