"""The keys of the list of trajectories."""

from collections.abc import Callable
from dataclasses import replace

from kevin_env.app.replay.layout import list_height
from kevin_env.app.replay.query import EVERYTHING, SORTS
from kevin_env.app.replay.state import State

Action = Callable[[State], State]
_FAR = 10**9


def move_to(state: State, at: int) -> State:
    """With the cursor there, or at the nearest end."""
    last = max(len(state.listing.shown) - 1, 0)
    return replace(state, listing=replace(state.listing, at=min(max(at, 0), last)))


def _move(by: int) -> Action:
    return lambda state: move_to(state, state.listing.at + by)


def _page(share: float) -> Action:
    def move(state: State) -> State:
        by = max(int(list_height(state.size) * abs(share)), 1)
        return move_to(state, state.listing.at + (by if share > 0 else -by))

    return move


def _open(state: State) -> State:
    row = state.listing.current
    return replace(state, wanted=(row,)) if row else state


def _mark(state: State) -> State:
    row, marked = state.listing.current, state.listing.marked
    new = None if row is None or (marked and marked.key == row.key) else row
    words = f"marked {new.problem}; c on another one compares them" if new else "no mark"
    return replace(state, listing=replace(state.listing, marked=new), notice=words)


def compare(state: State) -> State:
    """Puts the marked trajectory beside the one under the cursor."""
    row, marked = state.listing.current, state.listing.marked
    if row is None or marked is None:
        return replace(state, notice="mark a trajectory with m first")
    if row.key == marked.key:
        return replace(state, notice="this is the marked one; choose another")
    return replace(state, wanted=(marked, row))


def _sort(by: int) -> Action:
    def sort(state: State) -> State:
        at = SORTS.index(state.listing.sort) + by
        return move_to(state.with_listing(sort=SORTS[at % len(SORTS)], reverse=False), 0)

    return sort


def _reverse(state: State) -> State:
    return state.with_listing(reverse=not state.listing.reverse)


def _clear(state: State) -> State:
    return state.with_listing(words="", query=EVERYTHING) if state.listing.words else state


def _bad(state: State) -> State:
    return replace(state, screen="bad", help_scroll=0)


def follow(state: State) -> State:
    """Follows the file, or stops to."""
    words = "following: what is written shows" if not state.follow else "no longer following"
    return replace(state, follow=not state.follow, notice=words)


def _quit(state: State) -> State:
    return replace(state, done=True)


KEYS: dict[str, Action] = {
    **dict.fromkeys(("j", "down"), _move(1)),
    **dict.fromkeys(("k", "up"), _move(-1)),
    **dict.fromkeys(("pgdn", " ", "ctrl-f"), _page(1)),
    **dict.fromkeys(("pgup", "ctrl-b"), _page(-1)),
    "ctrl-d": _page(0.5),
    "ctrl-u": _page(-0.5),
    **dict.fromkeys(("g", "home"), _move(-_FAR)),
    **dict.fromkeys(("G", "end"), _move(_FAR)),
    **dict.fromkeys(("enter", "l", "right"), _open),
    "m": _mark,
    "c": compare,
    "s": _sort(1),
    "S": _sort(-1),
    "r": _reverse,
    "esc": _clear,
    "!": _bad,
    "f": follow,
    "q": _quit,
}
