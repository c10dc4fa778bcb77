"""What gated calls tell of a speedup: windows less what the gate costs. Pure: no clock. All times in seconds."""

import math
import statistics
from dataclasses import dataclass, field

from kevin_env.judge import timing
from kevin_env.judge.timing import LEAST, Pair, Speedup, speedup_of

QUIET = 0.15
"""The quantile of the null kernel's windows that tells what the gate costs where windows are rarely quiet."""
VARIES = 0.15
"""By what share of what the gate takes single windows vary: on an H200, where that is 1.4 ms for inputs of 1.3 GB, the
shortest of a few was 30 to 160 us too short."""
QUIET_STEADY = 0.1
"""An interval narrower than this needs no further turns there."""
QUIET_LEAST = 10
"""The fewest turns for that."""

SLOW_WINDOW = 5e-3
"""On a GPU, from windows of this length on nothing is rehearsed, as that takes longer than finding memory."""


class Lately(dict[str, float]):
    """The last window that was seen of each side: of `submission`, `reference` and `null`, in seconds."""

    @property
    def slow(self) -> bool:
        """Whether windows are very long."""
        return max(self.values(), default=0.0) > SLOW_WINDOW

    def much_slower(self, times: float) -> bool:
        """Whether the submission's is known to be so many times longer than the reference's."""
        return self.get("submission", 0.0) > times * self.get("reference", math.inf)

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
        rarely_quiet: Whether other work lengthens most windows, as on a CPU. What the gate costs is then told by the
            quiet ones among the null kernel's: that never turns the order of the sides round, and moves their ratio
            towards 1.
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
        return timing.low_quantile(self.gates, QUIET) if self.rarely_quiet else statistics.median(self.gates)

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
        """Of these pairs."""
        return speedup_of(self.pairs)

    @property
    def settled(self) -> bool:
        """Whether more turns would hardly tell more."""
        if len(self.turns) < LEAST:
            return False
        enough = QUIET_STEADY if self.rarely_quiet and len(self.turns) >= QUIET_LEAST else timing.STEADY
        return self.speedup.spread <= enough
