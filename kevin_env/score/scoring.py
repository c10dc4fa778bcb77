"""Scores by name or as functions, the score of a turn, and returns."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from kevin_env.outcome import NOISY, Correct, Outcome
from kevin_env.score.components import Component, Scored, WeightedSum
from kevin_env.score.presets import SCORES

Score = Callable[[Outcome], float]
"""A function from an outcome to a finite number. A `WeightedSum` also sees the reply."""

Bound = Literal["median", "lower"]
"""What to pay of a speedup: the median, limited by the lower end of its interval, or that end,
which noise cannot raise.
"""

Noisy = Literal["retry", "lower"]
"""Whether a speedup with a wide interval is measured again before it is paid, or paid at once."""


def resolve_score(score: str | Score) -> Score:
    """The score of that name, or the function itself.

    Raises:
        ValueError: if no score has that name, or it is a component of a score.
    """
    if isinstance(score, Component):
        raise ValueError(f"{score.name} is a component: give WeightedSum(((1.0, component),))")
    if not isinstance(score, str):
        return score
    if score not in SCORES:
        raise ValueError(
            f"unknown score {score!r}: give one of {', '.join(SCORES)}, or a function of an outcome"
        )
    return SCORES[score]


def require_payable(score: str | Score, settings: Mapping[str, Any]) -> None:
    """Rejects a score with a component that can never pay anything under these settings.

    Args:
        score: the score or its name.
        settings: those of the episode, by name.

    Raises:
        ValueError: in one line, naming the component and the setting to change.
    """
    resolved = resolve_score(score)
    if not isinstance(resolved, WeightedSum):
        return
    for component in (component for _, component in resolved.terms):
        for name, allowed in component.needs:
            if not str(settings[name]).startswith(allowed):
                raise ValueError(
                    f"score {score_name(score)} pays for {component.name}, which is measured only "
                    f"with {name}={' or '.join(map(repr, allowed))}, not {settings[name]!r}; "
                    "set it, or choose another score"
                )


def score_name(score: str | Score) -> str:
    """The name a score is recorded by: its key in `SCORES`, its formula, or `module.function`."""
    if isinstance(score, str):
        return score
    known = next((name for name, function in SCORES.items() if function is score), None)
    if known or isinstance(score, WeightedSum):
        return known or str(score)
    kind = type(score)
    module = getattr(score, "__module__", kind.__module__)
    return f"{module}.{getattr(score, '__qualname__', kind.__qualname__)}"


def at_bound(outcome: Outcome, bound: Bound = "median") -> Outcome:
    """The outcome with the speedup that counts.

    With `median` it is `min(median, low * (1 + NOISY))`: the median of a narrow interval, and a
    share that falls continuously with its width, so that a faster kernel is never paid less. With
    `lower` it is `low`. The fraction of the roofline is scaled alike. Outcomes without an interval
    stay as they are.
    """
    if not isinstance(outcome, Correct) or not outcome.speedup or not outcome.speedup_interval:
        return outcome
    low, roofline = outcome.speedup_interval[0], outcome.roofline
    counts = low if bound == "lower" else min(outcome.speedup, low * (1 + NOISY))
    if roofline:
        fraction = roofline.fraction * counts / outcome.speedup
        roofline = roofline.model_copy(update={"fraction": fraction})
    return outcome.model_copy(update={"speedup": counts, "roofline": roofline})


Pay = Literal["turn", "improvement"]
"""What a turn is paid: its score, or what that exceeds the best score of the episode so far by."""


def earned(score: float, before: float | None) -> float:
    """What exceeds the score that was paid before.

    A negative score stays, so that repeating a failure has a cost.

    Args:
        score: the score of the turn by itself.
        before: the best score so far: of the same code, or of the episode; None if there is none.
    """
    return score if before is None else min(score, max(score - before, 0.0))


def score_of(scored: Scored | Outcome, score: Score, bound: Bound = "median") -> float:
    """The score of a turn, with the speedup that `at_bound` selects.

    Raises:
        ValueError: if that is not a finite number.
    """
    scored = scored if isinstance(scored, Scored) else Scored(scored)
    outcome = at_bound(scored.outcome, bound)
    given: Any = (
        score(replace(scored, outcome=outcome))
        if isinstance(score, WeightedSum)
        else score(outcome)
    )
    value = math.nan
    if not isinstance(given, str | bytes):
        with suppress(TypeError, ValueError):
            value = float(given)
    if not math.isfinite(value):
        raise ValueError(
            f"score {score_name(score)} gave {given!r} for {outcome.category}/{outcome.kind}, "
            "not a finite number"
        )
    return value


ReturnsKind = Literal["sum", "max"]


def discounted_returns(
    scores: Sequence[float], gamma: float = 0.4, how: ReturnsKind = "sum"
) -> tuple[float, ...]:
    """One return per turn (arXiv 2507.11948, 4.3).

    Args:
        scores: one per turn, in order.
        gamma: discount from one turn to the next, 0 to 1.
        how: `sum`: R_t = sum over i >= t of gamma^(i-t) s_i; `max`: the largest of these terms.

    Raises:
        ValueError: if `gamma` is not within 0 to 1, or `how` is unknown.
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}; it must be between 0 and 1")
    if how not in ("sum", "max"):
        raise ValueError(f"returns {how!r} are unknown; give 'sum' or 'max'")
    returns: list[float] = []
    for score in reversed(scores):
        if not returns:
            returns.append(score)
        else:
            later = gamma * returns[-1]
            returns.append(score + later if how == "sum" else max(score, later))
    return tuple(reversed(returns))
