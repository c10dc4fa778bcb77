"""Scores by name or as functions, and what they give for a turn."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from kevin_env.outcome import Correct, Outcome
from kevin_env.score.presets import SCORES
from kevin_env.score.shape import Scored, WeightedSum

Score = Callable[[Outcome], float]
"""What one turn is worth: a function of its outcome that gives a finite number. A `WeightedSum` sees the reply, too."""

Bound = Literal["median", "lower"]
"""What of a speedup is paid: the median of its pairs, or the lower end of its interval, which noise cannot raise."""


def resolve_score(score: str | Score) -> Score:
    """The score of that name, or the function itself.

    Raises:
        ValueError: if no score has that name, or it needs what the judge does not measure.
    """
    if isinstance(score, str):
        if score not in SCORES:
            raise ValueError(f"unknown score {score!r}: give one of {', '.join(SCORES)}, or a function of an outcome")
        score = SCORES[score]
    needed = {component.needs for _, component in score.terms} if isinstance(score, WeightedSum) else set[str]()
    missing = sorted(name for name in needed if name and name not in Correct.model_fields)
    if missing:
        raise ValueError(f"score {score_name(score)} needs {', '.join(missing)}, which the judge does not measure")
    return score


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


def at_bound(outcome: Outcome, bound: Bound) -> Outcome:
    """The outcome with that end of its interval as its speedup; as it is for `median`, and where it has no interval."""
    if bound == "lower" and isinstance(outcome, Correct) and outcome.speedup_interval:
        return outcome.model_copy(update={"speedup": outcome.speedup_interval[0]})
    return outcome


def score_of(scored: Scored | Outcome, score: Score, bound: Bound = "median") -> float:
    """What `score` gives for a turn, its speedup taken at `bound`.

    Raises:
        ValueError: if that is not a finite number.
    """
    scored = scored if isinstance(scored, Scored) else Scored(scored)
    outcome = at_bound(scored.outcome, bound)
    value = float(score(replace(scored, outcome=outcome)) if isinstance(score, WeightedSum) else score(outcome))
    if not math.isfinite(value):
        raise ValueError(f"score {score_name(score)} gave {value} for {outcome.category}/{outcome.kind}, not a number")
    return value
