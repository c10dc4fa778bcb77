"""The keys of the view of one trajectory, or of two side by side."""

from collections.abc import Callable
from dataclasses import replace

from kevin_env.app.replay.layout import layout
from kevin_env.app.replay.list_keys import compare, follow, move_to
from kevin_env.app.replay.panes import pane_lines
from kevin_env.app.replay.state import PANES, PERIODS, Base, State, best_turn

Action = Callable[[State], State]
_FAR = 10**9
_BASES: tuple[Base, ...] = ("previous", "best", "other")


def go_to(state: State, at: int) -> State:
    """At that turn, from 0, or the nearest there is."""
    last = max(len(state.view.episode.turns) - 1, 0)
    return state.with_view(at=min(max(at, 0), last), scroll=0, shift=0)


def scroll_to(state: State, line: int) -> State:
    """With that line of the pane at the top, as far as the pane's end allows."""
    room = layout(state, state.size)
    most = max(len(pane_lines(state, state.view, room.pane_width)) - room.pane_height, 0)
    return state.with_view(scroll=min(max(line, 0), most))


def search(state: State, by: int = 1) -> State:
    """At the next line of the pane that holds what is searched for, or with -1 at the one before."""
    if not state.search:
        return replace(state, notice="nothing to search for; / asks for it")
    lines = pane_lines(state, state.view, layout(state, state.size).pane_width)
    hits = [
        number for number, line in enumerate(lines) if state.search.lower() in line.plain.lower()
    ]
    if not hits:
        return replace(state, notice=f"{state.search!r} is not in this pane")
    at = state.hit if state.hit in hits else state.view.scroll - (by > 0)
    after = [number for number in hits if (number > at if by > 0 else number < at)]
    new = (after or hits)[0 if by > 0 else -1]
    words = f"{hits.index(new) + 1} of {len(hits)} lines with {state.search!r}"
    return replace(scroll_to(state, new - 2), hit=new, notice=words)


def _turn(by: int) -> Action:
    return lambda state: go_to(state, state.view.at + by)


def _tick(state: State) -> State:
    if not state.playing:
        return state
    at_end = state.view.at + 1 >= len(state.view.episode.turns)
    if at_end and not state.follow:
        return replace(state, playing=False, notice="auto-play: the last turn")
    return go_to(state, state.view.at + 1)


def _play(state: State) -> State:
    at_end = state.view.at + 1 >= len(state.view.episode.turns)
    state = replace(state, playing=not state.playing)
    return go_to(state, 0) if state.playing and at_end and not state.follow else state


def _speed(by: int) -> Action:
    def change(state: State) -> State:
        speed = min(max(state.speed + by, 0), len(PERIODS) - 1)
        return replace(state, speed=speed, notice=f"auto-play: {PERIODS[speed]:g} s a turn")

    return change


def _best(state: State) -> State:
    return go_to(state, best_turn(state.view.episode))


def _next_error(state: State) -> State:
    return _next(
        state, lambda at: state.view.episode.turns[at].category != "correct", "no further failure"
    )


def _next_gain(state: State) -> State:
    turns = state.view.episode.turns

    def gains(at: int) -> bool:
        before = max((turn.speedup or 0.0 for turn in turns[:at]), default=0.0)
        return (turns[at].speedup or 0.0) > before

    return _next(state, gains, "no further improvement")


def _next(state: State, wanted: Callable[[int], bool], none: str) -> State:
    later = (at for at in range(state.view.at + 1, len(state.view.episode.turns)) if wanted(at))
    at = next(later, None)
    return replace(state, notice=none) if at is None else go_to(state, at)


def _scroll(by: int) -> Action:
    return lambda state: scroll_to(state, state.view.scroll + by)


def _page(share: float) -> Action:
    def move(state: State) -> State:
        by = max(int(layout(state, state.size).pane_height * abs(share)), 1)
        return scroll_to(state, state.view.scroll + (by if share > 0 else -by))

    return move


def _shift(by: int) -> Action:
    def move(state: State) -> State:
        if state.wrap:
            return replace(state, notice="lines are wrapped; w turns that off")
        return state.with_view(shift=max(state.view.shift + by, 0))

    return move


def _pane(number: int) -> Action:
    return lambda state: replace(state.with_view(scroll=0, shift=0), pane=PANES[number])


def _next_pane(by: int) -> Action:
    return lambda state: _pane((PANES.index(state.pane) + by) % len(PANES))(state)


def _base(state: State) -> State:
    """From another pane to the diff; there to what it can be compared with next."""
    if state.pane != "diff":
        return _pane(PANES.index("diff"))(state)
    known = _BASES if len(state.views) == 2 else _BASES[:2]
    at = known.index(state.base) + 1 if state.base in known else 0
    return replace(state.with_view(scroll=0), base=known[at % len(known)])


def _toggle(name: str) -> Action:
    def toggle(state: State) -> State:
        return scroll_to(replace(state, **{name: not getattr(state, name)}), state.view.scroll)

    return toggle


def _other_side(state: State) -> State:
    return replace(state, focus=(state.focus + 1) % len(state.views))


def _trajectory(by: int) -> Action:
    def move(state: State) -> State:
        if len(state.views) == 2:
            return replace(state, notice="comparing; q goes back to the list")
        moved = move_to(state, state.listing.at + by)
        if moved.listing.at == state.listing.at:
            return replace(state, notice="there is no further trajectory")
        row = moved.listing.current
        return replace(moved, wanted=(row,)) if row else state

    return move


def _mark(state: State) -> State:
    listing = replace(state.listing, marked=state.view.row)
    return replace(state, listing=listing, notice="marked; c on another trajectory compares them")


def _back(state: State) -> State:
    """To the list, or out where there is nothing else to choose from."""
    if len(state.listing.rows) == 1:
        return replace(state, done=True)
    return replace(
        state, screen="list", views=(), focus=0, base="previous", playing=False, search="", hit=-1
    )


def _escape(state: State) -> State:
    return replace(state, search="", hit=-1) if state.search else _back(state)


KEYS: dict[str, Action] = {
    **dict.fromkeys(("h", "left"), _turn(-1)),
    **dict.fromkeys(("l", "right"), _turn(1)),
    **dict.fromkeys(("0", "^"), _turn(-_FAR)),
    "$": _turn(_FAR),
    "b": _best,
    "e": _next_error,
    "i": _next_gain,
    **dict.fromkeys(("H", "["), _trajectory(-1)),
    **dict.fromkeys(("L", "]"), _trajectory(1)),
    **dict.fromkeys(("j", "down"), _scroll(1)),
    **dict.fromkeys(("k", "up"), _scroll(-1)),
    **dict.fromkeys(("pgdn", " ", "ctrl-f"), _page(0.9)),
    **dict.fromkeys(("pgup", "ctrl-b"), _page(-0.9)),
    "ctrl-d": _page(0.5),
    "ctrl-u": _page(-0.5),
    **dict.fromkeys(("g", "home"), _scroll(-_FAR)),
    **dict.fromkeys(("G", "end"), _scroll(_FAR)),
    "<": _shift(-8),
    ">": _shift(8),
    **{str(number + 1): _pane(number) for number in range(len(PANES))},
    "tab": _next_pane(1),
    "shift-tab": _next_pane(-1),
    "d": _base,
    "s": _toggle("side_by_side"),
    "w": _toggle("wrap"),
    "r": _toggle("reasoning"),
    "t": _toggle("timeline"),
    "n": lambda state: search(state, 1),
    "N": lambda state: search(state, -1),
    "a": _play,
    "tick": _tick,
    **dict.fromkeys(("+", "="), _speed(1)),
    "-": _speed(-1),
    "o": _other_side,
    "m": _mark,
    "c": compare,
    "f": follow,
    **dict.fromkeys(("q", "backspace"), _back),
    "esc": _escape,
}
