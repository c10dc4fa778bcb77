"""`reduce(state, event)`: the state after a key, or after anything else that happens. Nothing else
is done here.

A key is a character, or a word: `up`, `pgdn`, `enter`, `ctrl-c`, ...
"""

from collections.abc import Callable
from dataclasses import replace

from kevin_env.app.play.events import Event, happened
from kevin_env.app.play.panes import most_scroll
from kevin_env.app.play.state import Asking, State, Typing, Want
from kevin_env.app.replay.panes import PANES
from kevin_env.outcome import printable

Action = Callable[[State], State]

_LONGEST = 2000
"""Characters of a remark."""
_FAR = 10**9
_SCROLL = {"j": 1, "down": 1, "k": -1, "up": -1, "pgdn": 10, "pgup": -10, "g": -_FAR, "G": _FAR}


def reduce(state: State, event: Event | str) -> State:
    """The state after a key (a string) or an event."""
    if not isinstance(event, str):
        return happened(state, event)
    if event == "ctrl-c":
        return replace(state, done=True)
    state = replace(state, notice="", leaving=state.leaving and event == "q")
    if state.typing is not None:
        return _typed(state, state.typing, event)
    if state.help:
        return replace(state, help=event not in ("?", "q", "esc", "enter"))
    action = _KEYS.get(event)
    return action(state) if action else state


def _typed(state: State, line: Typing, key: str) -> State:
    if key == "esc" or (key == "backspace" and not line.text):
        return replace(state, typing=None)
    if key == "enter":
        return _DONE[line.what](replace(state, typing=None), " ".join(line.text.split()))
    new = {
        "backspace": line.text[:-1],
        "ctrl-u": "",
        "ctrl-w": " ".join(line.text.split()[:-1]),
    }.get(key)
    if new is None:
        new = line.text + key if len(key) == 1 and printable(key) else line.text
    return replace(state, typing=replace(line, text=new[:_LONGEST]))


def _ask(what: Asking, text: str) -> Action:
    return lambda state: replace(state, typing=Typing(what, text))


def _remark(state: State) -> State:
    if state.human:
        return replace(state, notice="you are the policy: there is no model to tell")
    return _ended(state) or _ask("remark", state.remark)(state)


def _remarked(state: State, words: str) -> State:
    return replace(state, remark=words, notice="" if words else "no remark")


def _again(state: State) -> State:
    last = 0 if state.phase == "starting" else len(state.turns) + state.running
    return (
        _ask("again", str(last))(state)
        if last
        else replace(state, notice="no turn has been taken yet")
    )


def _taken_again(state: State, words: str) -> State:
    last = len(state.turns) + state.running
    if not words.isdecimal() or not 1 <= int(words) <= last:
        return replace(
            state, notice=f"there is no turn {words}; give one from 1 to {last}" if words else ""
        )
    return replace(state, wanted=Want("again", int(words)), edit_next=False)


def _ended(state: State) -> State | None:
    over = state.phase == "ended"
    return (
        replace(state, notice="the episode has ended; t takes a turn again, q leaves")
        if over
        else None
    )


def _run_on(state: State) -> State:
    """Between stepping and running on."""
    if state.human:
        return replace(state, notice="you are the policy: e opens the editor")
    if state.phase == "waiting":
        return replace(state, step=False, wanted=Want("turn"))
    return _ended(state) or replace(state, step=not state.step)


def _step(state: State) -> State:
    if state.human:
        return _edit(state)
    return _ended(state) or (
        replace(state, wanted=Want("turn")) if state.phase == "waiting" else state
    )


def _edit(state: State) -> State:
    """Opens the editor, or has it opened when the running turn is over."""
    if state.phase == "waiting":
        return replace(state, wanted=Want("edit"))
    after = not state.edit_next
    words = (
        "the editor opens when this turn has been judged" if after else "the editor stays closed"
    )
    return _ended(state) or replace(state, edit_next=after, notice=words)


def _leave(state: State) -> State:
    if state.running and not state.leaving:
        words = "q again stops: the running turn is lost, every finished one is kept"
        return replace(state, leaving=True, notice=words)
    return replace(state, done=True)


def _look(by: int) -> Action:
    """At an earlier or a later turn; after the last one comes what goes on now."""

    def look(state: State) -> State:
        at = max((len(state.turns) if state.at is None else state.at) + by, 0)
        return replace(state, at=None if at >= len(state.turns) else at, prompt=False, scroll=0)

    return look


def _pane(choose: Callable[[State], int]) -> Action:
    """Another pane, of the last turn when none is looked at."""

    def show(state: State) -> State:
        if not state.turns:
            return replace(state, notice="no turn has been judged yet; p shows the prompt")
        at = len(state.turns) - 1 if state.at is None else state.at
        return replace(state, at=at, pane=PANES[choose(state) % len(PANES)], scroll=0)

    return show


def _next_pane(by: int) -> Action:
    return _pane(lambda state: PANES.index(state.pane) + (by if state.at is not None else 0))


def _scroll(by: int) -> Action:
    return lambda state: replace(state, scroll=min(max(state.scroll + by, 0), most_scroll(state)))


def _live(state: State) -> State:
    return replace(state, at=None, prompt=False, scroll=0)


def _prompt(state: State) -> State:
    return replace(state, at=None, prompt=not (state.prompt and state.at is None), scroll=0)


_DONE: dict[Asking, Callable[[State, str], State]] = {"remark": _remarked, "again": _taken_again}
_KEYS: dict[str, Action] = {
    " ": _run_on,
    **dict.fromkeys(("n", "enter"), _step),
    "r": _remark,
    "e": _edit,
    "t": _again,
    "p": _prompt,
    **dict.fromkeys(("q", "Q"), _leave),
    "?": lambda state: replace(state, help=True),
    **dict.fromkeys(("left", "h"), _look(-1)),
    **dict.fromkeys(("right", "l"), _look(1)),
    **dict.fromkeys(("esc", "0"), _live),
    "tab": _next_pane(1),
    "shift-tab": _next_pane(-1),
    **{str(number + 1): _pane(lambda _, number=number: number) for number in range(len(PANES))},
    **{key: _scroll(by) for key, by in _SCROLL.items()},
}
