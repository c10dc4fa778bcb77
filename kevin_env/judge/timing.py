"""From window lengths to a speedup with an interval. Pure: no clock, no tensors. All times in seconds.

A speedup is the median of paired ratios. Its 95 % interval is for the speedup that another judgement of the same code
on the same machine would tell. It joins, in quadrature, two parts: how the pairs of this judgement vary, by order
statistics, or by Student's t where there are only a few; and how judgements vary beyond that (`BETWEEN`), since
processes differ in where their memory lies and machines in what else they do. It says nothing of other machines, and
not of errors that all judgements share.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

CONFIDENCE = 0.95
NOISY = 0.25
"""A speedup whose interval is wider than this on either side, relative to it, is noisy."""
STEADY = 0.03
"""An interval narrower than this needs no further pairs."""
LEAST = 6
"""The fewest pairs whose extremes are a 95 % interval of their median."""
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}
"""The 97.5 % quantile of Student's t with one degree of freedom less than pairs."""
BETWEEN = {"cpu": 0.1, "cuda": 0.004}
"""Half of the 95 % interval by which the logarithm of a speedup varies between judgements beyond what the pairs of one
of them show, by device. On a CPU ten judgements of two kernels varied by 4 and 8 % (standard deviation) where nothing
else ran."""
CROWDED, BETWEEN_CROWDED = 0.3, 0.4
"""The same where processes that are timed wait for a processor for more than that share of what they run (1.2 to 2.1 at
a load of 5 to 7 on two processors). Of 57 judgements of two references against themselves, beside judges and tests
on two processors, logarithms varied by 0.16 to 0.45: one side may have both threads on one processor."""
GATED_ALLOWANCE = 100e-6
"""How far below the shortest gated call a burst is believed at least: 10 us of the gate's own error, and the host's
launch, which a burst hides: on an H200 35 to 50 us of a Triton kernel, in some processes 100 us all the time."""
QUEUED_ALLOWANCE = 50e-6
"""How far below the shortest queued call one is. That has no launch in it: on an H200 most were told within 40 us. As
far may the window of a queued burst be above the reference's: on an H200 medians were 116 us below to 15 us above."""
LAUNCH_ALLOWANCE = 150e-6
"""By how much a submission's first launch may take longer than the reference's: on an H200, in a process that has just
stood still, 70 us for a Triton kernel, 190 us for one that is launched through ctypes. What is more counts as work."""
WINDOWS_VARY = 0.03
"""By what share of what it has besides calls, such as the writing of inputs, a window of a burst varies: on an H200
medians of six were up to 2.6 % of 4 to 5 ms apart."""
RESOLUTION = 1e-6
"""No call is taken to be shorter than this."""
SHORTEST = 4e-6
"""What the gate may be off by: the speedup of shorter calls is noisy."""


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
        """With an interval that covers variation between judgements too, of which half is `between` (`BETWEEN`).

        Where calls are shorter than `SHORTEST`, also what the gate may be off by.
        """
        low, high = (math.hypot(math.log(self.ratio / end), between) for end in (self.low, self.high))
        low, high = self.ratio * math.exp(-low), self.ratio * math.exp(high)
        if min(self.reference, self.submission) < SHORTEST:
            low = min(low, max(self.reference - SHORTEST, RESOLUTION) / (self.submission + SHORTEST))
            high = max(high, (self.reference + SHORTEST) / max(self.submission - SHORTEST, RESOLUTION))
        return replace(self, low=low, high=high)


def low_quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of them is below, rounded down: of five or more windows a fifth leaves one out."""
    return sorted(values)[int(share * len(values))]


def speedup_of(pairs: Sequence[Pair]) -> Speedup:
    """The speedup that the pairs show, with the interval of this judgement alone.

    Raises:
        ValueError: without pairs.
    """
    ratios = sorted(pair.ratio for pair in pairs)
    low, high = student_interval(ratios) if len(ratios) in STUDENT else median_interval(ratios)
    shortest, longest = RESOLUTION / max(p.submission for p in pairs), max(p.reference for p in pairs) / RESOLUTION
    low, high = max(low, min(shortest, ratios[0])), min(high, max(longest, ratios[-1]))  # no call is shorter
    return Speedup(
        statistics.median(ratios),
        low,
        high,
        max(statistics.median(pair.reference for pair in pairs), RESOLUTION),
        max(statistics.median(pair.submission for pair in pairs), RESOLUTION),
    )


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics that covers the median with `CONFIDENCE`, else the extremes.

    The number of values below the median is binomial(n, 1/2): David and Nagaraja, Order Statistics, 7.1.
    """
    n = len(ordered)
    if n == 0:
        raise ValueError("no values")
    best = 0
    for k in range(n // 2):  # the interval from the k-th smallest to the k-th largest misses with this probability
        missed = 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if 1 - missed < CONFIDENCE:
            break
        best = k
    return ordered[best], ordered[n - 1 - best]


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    """An interval of their median with `CONFIDENCE`, as far as their logarithms are normal; of 2 to 5 values."""
    logs = [math.log(value) for value in values]
    half = STUDENT[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.median(values)
    return middle * math.exp(-half), middle * math.exp(half)


@dataclass(frozen=True)
class Burst:
    """One side's burst.

    Attributes:
        timed: A part of it from the end of one call to the end of a later one, as claimed.
        window: All of it as a gated call is timed, from the first visible byte to the look: it has all the work.
    """

    timed: float
    window: float


def burst_calls(bursts: Sequence[tuple[Burst, Burst]], count: int) -> list[Pair]:
    """Time of one call of the reference and of the submission, from each pair of bursts.

    Args:
        bursts: Pairs of the reference's and the submission's.
        count: Calls in the part that is timed.
    """
    return [Pair(ref.timed / count, sub.timed / count) for ref, sub in bursts]


def beside(references: Sequence[float], calls: Sequence[Pair]) -> list[Pair]:
    """Bursts' times of the submission beside gated ones of a reference, of which there may be fewer or more."""
    return [Pair(reference, call.submission) for reference, call in zip(itertools.cycle(references), calls)]


def burst_bounds(bursts: Sequence[tuple[Burst, Burst]], calls: Sequence[Pair], count: int) -> list[Pair]:
    """As `burst_calls`, but the submission's from whole windows, with the other side's to calibrate them.

    Windows have the same constant costs on both sides but for the host's first launch, so this is higher by at most
    what `beyond_windows` and `window_noise` say over `count`, unless work was moved out of the part that is timed.

    Args:
        bursts: As there.
        calls: What it says.
        count: Calls in a whole burst.
    """
    return [
        Pair(call.reference, call.reference + (sub.window - ref.window) / count)
        for call, (ref, sub) in zip(calls, bursts, strict=True)
    ]


def allowance(shortest: float, call: float) -> float:
    """How far below the shortest gated call a burst is believed on this host. Never more than twice `GATED_ALLOWANCE`.

    It is also the most that a submission can gain from seeing a burst's inputs at once. Hosts launch at different
    speeds, and no submission decides what the launch of the reference costs: on one H200 with slow processors 92 us,
    and 195 us that of a Triton kernel.

    Args:
        shortest: The shortest gated call of the reference.
        call: One call of it as bursts tell.
    """
    return GATED_ALLOWANCE + min(max(0.0, shortest - call), GATED_ALLOWANCE)


def beyond_windows(own: bool, other: bool, by_null: bool) -> float:
    """By how much an honest submission's window of a burst may be beyond what the other side's says. Seconds.

    Args:
        own: Whether the submission's bursts are queued.
        other: Whether the other side's are. Where these alone are, all of a first launch is in windows of one side.
        by_null: Whether that is the null kernel: after a long wait a look costs some 0.1 ms more.
    """
    if own and not by_null:
        return QUEUED_ALLOWANCE
    return LAUNCH_ALLOWANCE + QUEUED_ALLOWANCE * (other and not own)


def window_noise(bursts: Sequence[tuple[Burst, Burst]], calls: Sequence[Pair], count: int) -> float:
    """By how much windows of one side may differ from the other's as nothing is quite as quick every time. Seconds.

    Args:
        bursts: Pairs of the other side's, which no submission can change, and of the submission's.
        calls: What `burst_calls` says of them.
        count: Calls in a whole burst.
    """
    besides = [other.window - count * call.reference for call, (other, _) in zip(calls, bursts, strict=True)]
    return WINDOWS_VARY * max(0.0, statistics.median(besides))


def least_call(call: float, bound: float, launch: float, shortest: float, allowed: float) -> float:
    """The shortest time of a submission's call that a burst is believed.

    What its whole windows say has its first launch in it. A call that is shorter even without two long ones was not
    timed where it ran, so that nothing is taken off for a launch.

    Args:
        call: What the part that is timed says.
        bound: What whole windows of its bursts say.
        launch: What of each call in a window a first launch may take.
        shortest: Its shortest queued or else gated call.
        allowed: How far below that it is believed.
    """
    return max(bound - launch if call >= bound - 2 * launch else bound, shortest - allowed)


def not_below(calls: Sequence[Pair], least: float) -> list[Pair]:
    """The pairs with the submission's time raised to `least` where it is shorter."""
    return [Pair(call.reference, max(call.submission, least)) for call in calls]


def largest_unseen_gain(seconds: float, allowed: float) -> float:
    """The share of a call's time that an allowance may hide from the clock; a gated figure's is what the gate costs."""
    return allowed / (seconds + allowed)
