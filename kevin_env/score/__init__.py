"""Scores of turns and returns of episodes.

A score is a name in `SCORES`, a function of an outcome, or a `WeightedSum` of components:

    WeightedSum(((0.3, CORRECTNESS), (1.0, capped(SPEED, 3.0))))

Components read the type of the outcome, never a text. Unknown values pay nothing, and a hack is
paid no more than any other failure.
"""

from kevin_env.score.components import (
    COMPILE,
    CORRECTNESS,
    COVERAGE,
    DOUBLINGS,
    FASTER,
    FORMAT,
    GAIN,
    KERNRL,
    LENGTH,
    LOG_SPEED,
    MILESTONES,
    ROOFLINE,
    SPEED,
    THINKING,
    Component,
    Scored,
    WeightedSum,
    capped,
)
from kevin_env.score.presets import CORRECT_SHARE, SCORES, kevin
from kevin_env.score.scoring import (
    Bound,
    Noisy,
    Pay,
    ReturnsKind,
    Score,
    at_bound,
    discounted_returns,
    earned,
    require_payable,
    resolve_score,
    score_name,
    score_of,
)

__all__ = [
    "COMPILE",
    "CORRECTNESS",
    "CORRECT_SHARE",
    "COVERAGE",
    "DOUBLINGS",
    "FASTER",
    "FORMAT",
    "GAIN",
    "KERNRL",
    "LENGTH",
    "LOG_SPEED",
    "MILESTONES",
    "ROOFLINE",
    "SCORES",
    "SPEED",
    "THINKING",
    "Bound",
    "Component",
    "Noisy",
    "Pay",
    "ReturnsKind",
    "Score",
    "Scored",
    "WeightedSum",
    "at_bound",
    "capped",
    "discounted_returns",
    "earned",
    "kevin",
    "require_payable",
    "resolve_score",
    "score_name",
    "score_of",
]
