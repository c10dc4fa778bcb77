"""What the turns of an episode return."""

from collections.abc import Sequence
from typing import Literal

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
