"""What each key does: `reduce(state, key)` gives the next state, and nothing else happens.

A key is a character, or a word: `up`, `pgdn`, `enter`, `ctrl-d`, ... `tick` is auto-play's next
turn.
"""

from collections.abc import Callable
from dataclasses import replace

from kevin_env.app.replay import list_keys, view_keys
from kevin_env.app.replay.help_screen import last_scroll
from kevin_env.app.replay.state import Screen, State
from kevin_env.app.replay.typing_keys import ask, typed

Action = Callable[[State], State]

_FAR = 10**9
_SCROLL = {
    "j": 1,
    "down": 1,
    "k": -1,
    "up": -1,
    "pgdn": 10,
    " ": 10,
    "pgup": -10,
    "g": -_FAR,
    "G": _FAR,
}


def reduce(state: State, key: str) -> State:
    """The state after a key."""
    state = replace(state, notice="")
    if key == "ctrl-c":
        return replace(state, done=True)
    if state.typing is not None:
        return typed(state, key)
    if state.help:
        return _in_help(state, key)
    if key == "Q":
        return replace(state, done=True)
    if key == "?":
        return replace(state, help=True, help_scroll=0, playing=False)
    if state.playing and key not in _WHILE_PLAYING:
        state = replace(state, playing=False)
    action = _SCREENS[state.screen].get(key)
    return action(state) if action else state


def _in_help(state: State, key: str) -> State:
    if key in _SCROLL:
        scroll = min(state.help_scroll + _SCROLL[key], last_scroll(state))
        return replace(state, help_scroll=max(scroll, 0))
    return replace(state, help=False) if key in ("?", "q", "esc", "enter") else state


def _leave_bad(state: State) -> State:
    return replace(state, screen="list", help_scroll=0)


def _scroll_bad(by: int) -> Action:
    def scroll(state: State) -> State:
        most = max(len(state.listing.bad) - 1, 0)
        return replace(state, help_scroll=min(max(state.help_scroll + by, 0), most))

    return scroll


_WHILE_PLAYING = {
    "tick",
    "a",
    "+",
    "-",
    "=",
    "f",
    "w",
    "t",
    "r",
    "s",
    *"1234567",
    "tab",
    "shift-tab",
}
_BAD: dict[str, Action] = {key: _scroll_bad(by) for key, by in _SCROLL.items()}
_BAD |= {"q": _leave_bad, "esc": _leave_bad, "!": _leave_bad}
_ASK: dict[str, Action] = {
    "/": lambda state: ask(state, "filter" if state.screen == "list" else "search")
}
_SCREENS: dict[Screen, dict[str, Action]] = {
    "list": list_keys.KEYS | _ASK | {":": lambda state: ask(state, "row")},
    "view": view_keys.KEYS
    | _ASK
    | {":": lambda state: ask(state, "turn"), "D": lambda state: ask(state, "base")},
    "bad": _BAD,
}
