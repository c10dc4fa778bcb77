"""What a turn is worth, and what the turns of an episode return."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from kevin_env.outcome import Correct, Outcome

Score = Callable[[Outcome], float]
"""What one outcome is worth: any function of the outcome alone that gives a finite number."""

ReturnsKind = Literal["sum", "max"]
Bound = Literal["median", "lower"]
"""What of a speedup is paid: the median of its pairs, or the lower end of its interval, which noise cannot raise."""


def kevin(outcome: Outcome) -> float:
    """Kevin's score: 0.3 for a correct kernel plus its speedup, 0 for everything else (arXiv 2507.11948, 3.2).

    Not clipped. A correct kernel whose time is too noisy to tell is worth 0.3.
    """
    return 0.3 + (outcome.speedup or 0.0) if isinstance(outcome, Correct) else 0.0


SCORES: dict[str, Score] = {"kevin": kevin}


def resolve_score(score: str | Score) -> Score:
    """The score of that name, or the function itself.

    Raises:
        ValueError: if no score has that name.
    """
    if callable(score):
        return score
    if score not in SCORES:
        raise ValueError(f"unknown score {score!r}: give one of {', '.join(SCORES)}, or a function of an outcome")
    return SCORES[score]


def score_name(score: str | Score) -> str:
    """The name a score is recorded by: its key in `SCORES`, or `module.function`."""
    if isinstance(score, str):
        return score
    known = next((name for name, function in SCORES.items() if function is score), None)
    kind = type(score)
    module = getattr(score, "__module__", kind.__module__)
    return known or f"{module}.{getattr(score, '__qualname__', kind.__qualname__)}"


def score_of(outcome: Outcome, score: Score, bound: Bound = "median") -> float:
    """What `score` gives for the outcome, its speedup taken at `bound`.

    Raises:
        ValueError: if that is not a finite number.
    """
    if bound == "lower" and isinstance(outcome, Correct) and outcome.speedup_interval:
        outcome = outcome.model_copy(update={"speedup": outcome.speedup_interval[0]})
    value = float(score(outcome))
    if not math.isfinite(value):
        raise ValueError(f"score {score_name(score)} gave {value} for {outcome.category}/{outcome.kind}, not a number")
    return value


def discounted_returns(scores: Sequence[float], gamma: float = 0.4, how: ReturnsKind = "sum") -> tuple[float, ...]:
    """One return per turn (arXiv 2507.11948, 4.3).

    Args:
        scores: one per turn, in order.
        gamma: discount from one turn to the next, 0 to 1.
        how: `sum`: R_t = sum over i >= t of gamma^(i-t) s_i; `max`: the largest of these terms.

    Raises:
        ValueError: if `gamma` is not within 0 to 1, or `how` is neither word.
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}; it must lie within 0 and 1")
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
