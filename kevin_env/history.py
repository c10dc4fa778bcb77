"""Which earlier turns a prompt shows."""

import heapq
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kevin_env.record import Turn

Order = Callable[[Sequence[Turn]], Sequence[Turn]]
"""The turns that a prompt shows, the most wanted first."""


@dataclass(frozen=True)
class ContextPolicy:
    """Chooses the turns that a prompt shows.

    Within the budget, turns lose their code first, the least wanted turn first, then their feedback
    except for its first line. Summaries, first lines and the last turn's whole feedback always
    stay.
    """

    order: Order
    within_budget: bool = True


def _merit(turn: Turn) -> tuple[float, int]:
    return turn.full_score, turn.turn


def _best_last(turns: Sequence[Turn]) -> Sequence[Turn]:
    best = max(turns, key=_merit)
    return turns[-1:] if best is turns[-1] else (turns[-1], best)


def _last_best_newest(turns: Sequence[Turn]) -> Sequence[Turn]:
    first = _best_last(turns)
    return (*first, *(turn for turn in turns[::-1] if turn not in first))


KEVIN = ContextPolicy(_last_best_newest)
"""All turns: the last, the best, then the newest first."""
FULL = ContextPolicy(KEVIN.order, within_budget=False)
"""All turns, however long."""


def last_n(n: int = 3) -> ContextPolicy:
    """The last `n` turns."""
    return ContextPolicy(lambda turns: turns[: -n - 1 : -1])


def top_w(w: int = 4) -> ContextPolicy:
    """The `w` turns with the best scores, the later of equals (Dr. Kernel, arXiv 2602.05885)."""
    return ContextPolicy(lambda turns: heapq.nlargest(w, turns, key=_merit))


BEST_LAST = ContextPolicy(_best_last)
"""The last turn and the best one."""

_PLAIN = {"kevin": KEVIN, "full": FULL, "best_last": BEST_LAST}
_COUNTED: dict[str, Callable[..., ContextPolicy]] = {"last_n": last_n, "top_w": top_w}


def resolve_context(context: str) -> ContextPolicy:
    """The policy named `kevin`, `full`, `best_last`, `last_n:3` or `top_w:4`.

    Raises:
        ValueError: if no policy has that name, or its number is not 1 or more.
    """
    name, colon, number = context.partition(":")
    if name in _PLAIN and not colon:
        return _PLAIN[name]
    if name in _COUNTED and not colon:
        return _COUNTED[name]()
    if name in _COUNTED and re.fullmatch("0*[1-9][0-9]*", number):
        return _COUNTED[name](int(number))
    names = ", ".join([*_PLAIN, *(f"{name}:N" for name in _COUNTED)])
    raise ValueError(f"unknown context {context!r}: give one of {names}, with N at least 1")
