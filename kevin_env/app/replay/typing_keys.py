"""The line that is typed at the foot of the screen: a filter, something to search for, a number to
go to.
"""

from dataclasses import replace

from kevin_env.app.replay.list_keys import move_to
from kevin_env.app.replay.query import read_query
from kevin_env.app.replay.state import Asking, State, Typing
from kevin_env.app.replay.view_keys import go_to, search
from kevin_env.outcome import printable

_LONGEST = 200


def ask(state: State, what: Asking) -> State:
    """Begins to type; a filter goes on from the one that is there."""
    before = state.listing.words if what == "filter" else ""
    return replace(state, typing=Typing(what, before, before), playing=False)


def typed(state: State, key: str) -> State:
    """A key while a line is typed."""
    line = state.typing
    if line is None:
        return state
    if key == "esc" or (key == "backspace" and not line.text):
        return replace(
            filtered(state, line.before) if line.what == "filter" else state, typing=None
        )
    if key == "enter":
        return _DONE[line.what](replace(state, typing=None), line.text.strip())
    new = {
        "backspace": line.text[:-1],
        "ctrl-u": "",
        "ctrl-w": " ".join(line.text.split()[:-1]),
    }.get(key)
    if new is None:
        new = line.text + key if len(key) == 1 and printable(key) else line.text
    state = replace(state, typing=replace(line, text=new[:_LONGEST]))
    return filtered(state, new) if line.what == "filter" else state


def filtered(state: State, words: str) -> State:
    """With the list filtered by these words."""
    query = read_query(words)
    again = (
        {} if query.text == state.listing.query.text else {"hits": frozenset[int](), "searched": 0}
    )
    return state.with_listing(words=words, query=query, **again)


def _search(state: State, words: str) -> State:
    return (
        search(replace(state, search=words, hit=-1)) if words else replace(state, search="", hit=-1)
    )


def _go_to_turn(state: State, words: str) -> State:
    numbers = [turn.turn for turn in state.view.episode.turns]
    if words == "$" and numbers:
        return go_to(state, len(numbers) - 1)
    if not words.isdecimal() or int(words) not in numbers:
        return replace(state, notice=f"there is no turn {words}" if words else "")
    return go_to(state, numbers.index(int(words)))


def _go_to_row(state: State, words: str) -> State:
    if not words.isdecimal():
        return replace(state, notice=f"{words!r} is no number" if words else "")
    return move_to(state, int(words) - 1)


def _base(state: State, words: str) -> State:
    numbers = [turn.turn for turn in state.view.episode.turns]
    if not words.isdecimal() or int(words) not in numbers:
        return replace(state, notice=f"there is no turn {words}" if words else "")
    return replace(state.with_view(scroll=0), pane="diff", base=int(words))


_DONE = {
    "filter": filtered,
    "search": _search,
    "row": _go_to_row,
    "turn": _go_to_turn,
    "base": _base,
}
