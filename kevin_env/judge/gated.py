"""What gated calls tell of a speedup: windows less what the gate costs. Pure: no clock. All times in seconds."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from kevin_env.judge import timing
from kevin_env.judge.timing import CONFIDENCE, LEAST, RESOLUTION, Pair, Speedup, speedup_of

QUIET = 0.15
"""The quantile of one side's windows that tells a call where they are rarely quiet. Of two kernels of 1 to 2 ms on a
virtual machine with two processors speedups varied by 4 and 6 % so, and by 14 and 9 % as medians of the same pairs."""
VARIES = 0.15
"""By what share of what the gate takes single windows vary: on an H200, where that is 1.4 ms for inputs of 1.3 GB, the
shortest of a few was 30 to 160 us too short."""
RESAMPLES = 200
QUIET_STEADY = 0.1
"""An interval narrower than this needs no further turns there."""
QUIET_LEAST = 10
"""The fewest turns of which resamples say enough for that."""

SLOW_WINDOW = 5e-3
"""On a GPU, from windows of this length on nothing is rehearsed, as that takes longer than finding memory."""


class Lately(dict[str, float]):
    """The last window that was seen of each side: of `submission`, `reference` and `null`, in seconds."""

    @property
    def slow(self) -> bool:
        """Whether windows are very long."""
        return max(self.values(), default=0.0) > SLOW_WINDOW

    @property
    def beyond_null(self) -> float:
        """By how much the shorter side's is longer than the null kernel's, in seconds."""
        return min(self["submission"], self["reference"]) - self["null"]

    @property
    def guess(self) -> float:
        """About what a call of the shorter side takes, before any was timed; too much beside others. Seconds."""
        return max(self.beyond_null - timing.GATED_ALLOWANCE, timing.RESOLUTION)


@dataclass(frozen=True)
class Turn:
    """The shortest window of each side, and for how long the null kernel kept the device in its own. Seconds."""

    submission: float
    reference: float
    null: float
    hold: float

    @property
    def gate(self) -> float:
        """What the gate costs of every window."""
        return self.null - self.hold


@dataclass
class Gated:
    """The gated turns of one contest: a call is a window less what the gate costs. All figures need a turn.

    Attributes:
        turns: One after the other.
        fitting_gates: What the gate costs of windows with a call as long as the shortest of these. Empty where the null
            kernel of the turns is about as long: its windows hold for them.
        queued_windows: Of queued calls of the submission, and ...
        queued_gates: ... what the gate costs of one, as the null kernel's tell.
        queued: What they say of a call (`kevin_env.judge.queued`); None where there was none.
        rarely_quiet: Whether a low quantile of the windows tells a call, as on a CPU: what wakes up late there, or has
            to fetch what others wrote, lengthens most windows, by as much as a call, and nothing refines them.
    """

    turns: list[Turn] = field(default_factory=list[Turn])
    fitting_gates: list[float] = field(default_factory=list[float])
    queued_windows: list[float] = field(default_factory=list[float])
    queued_gates: list[float] = field(default_factory=list[float])
    queued: float | None = None
    rarely_quiet: bool = False

    @property
    def gates(self) -> list[float]:
        """What the gate cost each time it was seen, in seconds."""
        return self.fitting_gates or [turn.gate for turn in self.turns]

    @property
    def gate_cost(self) -> float:
        """What the gate costs of a window; who does without what honest candidates do there gains it."""
        return statistics.median(self.gates)

    @property
    def shortest(self) -> float:
        """The shortest call of the submission that was seen, in seconds."""
        return min(turn.submission for turn in self.turns) - min(self.gates)

    @property
    def shortest_reference(self) -> float:
        """The same of the reference."""
        return min(turn.reference for turn in self.turns) - min(self.gates)

    @property
    def blur(self) -> float:
        """By how much the shortest calls may be too short; where inputs are large they are much of a window."""
        return VARIES * max(0.0, min(self.gates))

    @property
    def pairs(self) -> list[Pair]:
        """Of all turns, with the same cost taken away from both sides."""
        cost = self.gate_cost
        return [Pair(turn.reference - cost, turn.submission - cost) for turn in self.turns]

    @property
    def speedup(self) -> Speedup:
        """Of these pairs, or of the quiet ones among the windows."""
        return quiet_speedup(self.turns) if self.rarely_quiet else speedup_of(self.pairs)

    @property
    def settled(self) -> bool:
        """Whether more turns would hardly tell more: all windows are calm, or the quiet ones tell enough."""
        calm = len(self.turns) >= LEAST and speedup_of(self.pairs).spread <= timing.STEADY
        enough = self.rarely_quiet and len(self.turns) >= QUIET_LEAST
        return calm or (enough and self.speedup.spread <= QUIET_STEADY)


def quiet_speedup(turns: Sequence[Turn]) -> Speedup:
    """The speedup that the quiet windows of both sides show. The interval is the percentile bootstrap over turns.

    Efron and Tibshirani, An Introduction to the Bootstrap, 13.3. It is the same whenever it is asked for.
    """
    found, chance = _quiet(turns), random.Random(len(turns))
    ratios = sorted(_quiet(chance.choices(turns, k=len(turns))).ratio for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    low, high = min(found.ratio, ratios[cut]), max(found.ratio, ratios[-1 - cut])
    return Speedup(found.ratio, low, high, max(found.reference, RESOLUTION), max(found.submission, RESOLUTION))


def _quiet(turns: Sequence[Turn]) -> Pair:
    windows = ((turn.reference, turn.submission, turn.gate) for turn in turns)
    reference, submission, gate = (timing.low_quantile(side, QUIET) for side in zip(*windows, strict=True))
    return Pair(reference - gate, submission - gate)
