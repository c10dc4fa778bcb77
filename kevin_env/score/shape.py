"""Scores as weighted sums of named components, each of which says its range."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kevin_env.outcome import Outcome, is_hack


@dataclass(frozen=True, slots=True)
class Scored:
    """What a score may look at: how a turn ended, and how long the answer was. None is not known,
    and pays nothing.
    """

    outcome: Outcome
    code_tokens: float | None = None
    """Length of the submission's code."""
    reasoning_tokens: float | None = None
    """Length of the reasoning; 0 where there was none."""


@dataclass(frozen=True, slots=True)
class Component:
    """One thing that is paid for.

    `function` gives any number; what lies outside of `low` to `high` is cut off. A module's
    function can be pickled with the score, a lambda cannot.
    """

    name: str
    function: Callable[[Scored], float]
    low: float = 0.0
    high: float = 1.0
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The settings without which it pays nothing, by name, each with the words its value may begin
    with.
    """
    told: str = ""
    """What it pays for, as the prompt says it; else its name."""

    def __call__(self, scored: Scored) -> float:
        """What is paid, within `low` to `high`."""
        return min(max(self.function(scored), self.low), self.high)


def capped(component: Component, high: float) -> Component:
    """The component, paying at most `high`."""
    return replace(component, name=f"min({component.name}, {high:g})", high=high)


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A score: components, each times its weight, and their sum cut off outside of `low` to `high`.

    Whatever the components say, a hack gets the low end of the range: no other failure is paid
    less.

    Raises:
        ValueError: if a weight is 0 or not finite, or the range has no low end.
    """

    terms: tuple[tuple[float, Component], ...]
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        for weight, component in self.terms:
            if weight == 0 or not math.isfinite(weight):
                raise ValueError(
                    f"{component.name} has weight {weight}; give a finite number other than 0"
                )
        if not math.isfinite(self.range[0]):
            raise ValueError(
                f"score {self} has no low end; cap what has a negative weight, or give low="
            )

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most that it can pay; the most may be infinite."""
        ends = [sorted((weight * part.low, weight * part.high)) for weight, part in self.terms]
        return self._cut(sum(low for low, _ in ends)), self._cut(sum(high for _, high in ends))

    def __call__(self, scored: Scored | Outcome) -> float:
        """What it pays. Of an outcome alone, what depends on the reply is not known."""
        scored = scored if isinstance(scored, Scored) else Scored(scored)
        return self._cut(sum(value for _, value in self.parts(scored)))

    def parts(self, scored: Scored) -> tuple[tuple[str, float], ...]:
        """What each component pays, weighted, with its name, before the sum is cut off. A hack has
        one part, `hack`.
        """
        if is_hack(scored.outcome):
            return (("hack", self.range[0]),)
        return tuple(
            (component.name, weight * component(scored)) for weight, component in self.terms
        )

    def __str__(self) -> str:
        total = " + ".join(f"{weight:g}*{component.name}" for weight, component in self.terms)
        bounded = (self.low, self.high) != (-math.inf, math.inf)
        return f"clip({total}, {self.low:g}, {self.high:g})" if bounded else total

    def _cut(self, value: float) -> float:
        return min(max(value, self.low), self.high)
