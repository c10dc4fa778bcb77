"""Components of scores and their weighted sums.

Components depend on the type of the outcome, and on lengths in tokens.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kevin_env.outcome import (
    CompileError,
    Correct,
    FormatError,
    Outcome,
    RulesViolation,
    held_roofline,
    is_hack,
    speedup_of,
)

OFTEN_BUGS = frozenset({"inputs_changed", "not_written"})
"""Kinds of the hack rate that are scored like wrong values: they are usually bugs, not cheats."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What a score can depend on. Values that are None pay nothing."""

    outcome: Outcome
    code_tokens: float | None = None
    """Length of the submission's code."""
    reasoning_tokens: float | None = None
    """Length of the reasoning; 0 if there was none."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a score.

    The result of `function` is clipped to `low` and `high`. A module's function can be pickled with
    the score, a lambda cannot.
    """

    name: str
    function: Callable[[Scored], float]
    low: float = 0.0
    high: float = 1.0
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Settings required to pay anything: each name with the prefixes allowed for its value."""
    description: str = ""
    """Its description in the prompt; by default `name`."""

    def __call__(self, scored: Scored) -> float:
        """The component's value, within `low` to `high`."""
        return min(max(self.function(scored), self.low), self.high)


def capped(component: Component, high: float) -> Component:
    """The component, capped at `high`."""
    return replace(component, name=f"min({component.name}, {high:g})", high=high)


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A score: the weighted sum of components, clipped to `low` and `high`.

    A hack gets the low end of the range, whatever the components are.

    Raises:
        ValueError: if there is no component, a weight is 0 or not finite, or the range is empty or
            has no lower bound.
    """

    terms: tuple[tuple[float, Component], ...]
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.terms or self.low > self.high:
            raise ValueError("a score needs at least one component, and low must not exceed high")
        for weight, component in self.terms:
            if weight == 0 or not math.isfinite(weight):
                raise ValueError(
                    f"{component.name} has weight {weight}; give a finite number other than 0"
                )
        if not math.isfinite(self.range[0]):
            raise ValueError(
                f"score {self} has no lower bound; "
                "cap components with a negative weight, or give low="
            )

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest possible score; the largest can be infinite."""
        ends = [sorted((weight * part.low, weight * part.high)) for weight, part in self.terms]
        return self._clip(sum(low for low, _ in ends)), self._clip(sum(high for _, high in ends))

    def __call__(self, scored: Scored | Outcome) -> float:
        """The score. For an outcome alone, lengths are unknown."""
        scored = scored if isinstance(scored, Scored) else Scored(scored)
        return self._clip(sum(value for _, value in self.parts(scored)))

    def parts(self, scored: Scored) -> tuple[tuple[str, float], ...]:
        """Name and weighted value of each component before clipping; `hack` alone for a hack."""
        if is_hack(scored.outcome) and scored.outcome.kind not in OFTEN_BUGS:
            return (("hack", self.range[0]),)
        return tuple(
            (component.name, weight * component(scored)) for weight, component in self.terms
        )

    def __str__(self) -> str:
        total = " + ".join(f"{weight:g}*{component.name}" for weight, component in self.terms)
        bounded = (self.low, self.high) != (-math.inf, math.inf)
        return f"clip({total}, {self.low:g}, {self.high:g})" if bounded else total

    def _clip(self, value: float) -> float:
        return min(max(value, self.low), self.high)


_MILESTONE = 1.05
"""CUDA Agent's: more than 5 % faster."""
_SHORT_CODE, _LONG_CODE = 125, 2000
_LONG_THOUGHT, _LONGEST_THOUGHT, _THOUGHT_FLOOR, _NO_THOUGHT = 500, 1000, 0.7, 0.5


def _format(scored: Scored) -> float:
    return float(not isinstance(scored.outcome, FormatError))


def _compile(scored: Scored) -> float:
    return float(not isinstance(scored.outcome, FormatError | RulesViolation | CompileError))


def _correctness(scored: Scored) -> float:
    return float(isinstance(scored.outcome, Correct))


def _speed(scored: Scored) -> float:
    return max(speedup_of(scored.outcome) or 0.0, 0.0)


def _gain(scored: Scored) -> float:
    return _speed(scored) - 1.0


def _log_speed(scored: Scored) -> float:
    return math.log2(1.0 + _speed(scored))


def _doublings(scored: Scored) -> float:
    return math.log2(max(_speed(scored), 1.0))


def _faster(scored: Scored) -> float:
    return float(_speed(scored) > 1.0)


def _coverage(scored: Scored) -> float:
    return (scored.outcome.coverage or 0.0) if isinstance(scored.outcome, Correct) else 0.0


def _roofline(scored: Scored) -> float:
    """Raises for a timed kernel without a fraction, so that no run goes without pay for speed."""
    if speedup_of(scored.outcome) is None:
        return 0.0
    roofline = held_roofline(scored.outcome)
    if roofline is None:
        raise ValueError("the judge measured no fraction of the roofline; choose another score")
    return roofline.fraction


def _milestones(scored: Scored) -> float:
    if not isinstance(scored.outcome, Correct):
        return -1.0
    return 3.0 if _speed(scored) > _MILESTONE else 1.0


def _kernrl(scored: Scored) -> float:
    if not isinstance(scored.outcome, Correct):
        return -0.25 if _compile(scored) else -0.5
    speedup = speedup_of(scored.outcome)
    if speedup is None:
        return 0.0
    return speedup - 1.0 if speedup > 1.0 else 0.5 * (speedup - 1.0)


def _length(scored: Scored) -> float:
    if scored.code_tokens is None or not isinstance(scored.outcome, Correct):
        return 0.0
    return (_LONG_CODE - scored.code_tokens) / (_LONG_CODE - _SHORT_CODE)


def _thinking(scored: Scored) -> float:
    if scored.reasoning_tokens is None or not isinstance(scored.outcome, Correct):
        return 0.0
    if not scored.reasoning_tokens:
        return _NO_THOUGHT
    beyond = (scored.reasoning_tokens - _LONG_THOUGHT) / (_LONGEST_THOUGHT - _LONG_THOUGHT)
    return 1.0 - (1.0 - _THOUGHT_FLOOR) * min(max(beyond, 0.0), 1.0)


FORMAT = Component("format", _format, description="a reply with code")
"""1 for a reply that holds a submission."""
COMPILE = Component("compile", _compile, description="code that builds")
"""1 for code that was built, whether or not it then ran."""
CORRECTNESS = Component(
    "correctness", _correctness, description="correct outputs on every input set"
)
"""1 for a correct kernel. There is no partial credit, since a judgement ends at the first wrong
output.
"""
SPEED = Component("speed", _speed, high=math.inf, description="the speedup")
"""The speedup of a correct kernel."""
GAIN = Component("gain", _gain, high=math.inf, description="the speedup above 1")
"""Speedup - 1 of a kernel that is faster than the reference."""
LOG_SPEED = Component("log_speed", _log_speed, high=math.inf, description="log2(1 + speedup)")
"""log2(1 + speedup) of a correct kernel: 1 at the reference's speed and positive at any speed."""
DOUBLINGS = Component(
    "doublings", _doublings, high=math.inf, description="log2(speedup) above a speedup of 1"
)
"""log2(speedup) of a kernel that is faster than the reference."""
FASTER = Component("faster", _faster, description="a speedup above 1")
"""1 for a kernel that is faster than the reference."""
COVERAGE = Component(
    "coverage", _coverage, needs=(("profile", ("ncu",)), ("device", ("auto", "cuda"))),
    description="the share of device time in your own kernels",
)  # fmt: skip
"""Share of device time in a correct kernel's own kernels, 0 to 1 (Dr. Kernel, arXiv 2602.05885); 0
if Nsight Compute could not measure it.
"""
ROOFLINE = Component(
    "roofline", _roofline, description="the fraction of the device's limit that it reaches"
)
"""Fraction of the device's roofline that a correct kernel reaches, clipped to 1.

Raises ValueError for a timed kernel without a measured fraction.
"""
MILESTONES = Component(
    "milestones", _milestones, low=-1.0, high=3.0, needs=(("baseline", ("compile",)),),
    description=f"correct outputs on every input set and a speedup above {_MILESTONE}",
)  # fmt: skip
"""-1 for a failure, 1 for a correct kernel, 3 for one more than 5 % faster than torch.compile (CUDA
Agent, arXiv 2602.24286). The paper's 2, for faster than eager only, would need a second baseline.
"""
KERNRL = Component(
    "kernrl",
    _kernrl,
    low=-0.5,
    high=2.0,
    description="code that builds, correct outputs and the speedup",
)
"""-0.5 if it did not build, -0.25 if it was not correct, else speedup - 1, halved below 0, up to 2.

As in kernrl, a correct kernel of less than half the reference's speed is paid less than a wrong
one, and a correct kernel without a speedup 0.
"""
LENGTH = Component(
    "length",
    _length,
    description=f"short code (paid in full up to {_SHORT_CODE} tokens, "
    f"not at all from {_LONG_CODE})",
)
"""1 for correct code of up to 125 tokens, falling to 0 at 2000 (kernel-rl: 500 and 8000 characters,
at four per token).
"""
THINKING = Component(
    "thinking",
    _thinking,
    description=f"short reasoning (paid in full up to {_LONG_THOUGHT} tokens, "
    f"to {_THOUGHT_FLOOR:.0%} from {_LONGEST_THOUGHT} and to {_NO_THOUGHT:.0%} without any)",
)
"""For the reasoning of a correct kernel: 1 up to 500 tokens, falling to 0.7 at 1000; 0.5 without
any (kernel-rl: 2000 and 4000 characters, at four per token).
"""
