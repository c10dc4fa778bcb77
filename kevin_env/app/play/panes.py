"""What the large part of the screen shows: what goes on now, or a turn that is looked at."""

from rich.text import Text

from kevin_env.app.play.layout import layout
from kevin_env.app.play.state import State
from kevin_env.app.play.tail import tail
from kevin_env.app.replay import panes as of_turn
from kevin_env.app.replay.code import Line
from kevin_env.app.replay.panes import Pane, prose
from kevin_env.app.replay.pieces import DIM, Look, coloured, paragraph, text, wrapped


def pane_lines(state: State, width: int, height: int) -> list[Text]:
    """The lines of the pane, all of them; of a reply that is coming in those of its end that there
    is room for.
    """
    if state.at is not None:
        return turn_lines(state, state.pane, width)
    if state.prompt:
        return _prompt(state, width)
    if state.running:
        return _reply(state, width, height)
    return _between(state, width)


def turn_lines(state: State, pane: Pane, width: int) -> list[Text]:
    """A pane of the turn that is looked at, or of the last one."""
    at = len(state.turns) - 1 if state.at is None else state.at
    return of_turn.pane_lines(state.episode, max(at, 0), pane, Look(max(width, 8)))


def pane_title(state: State) -> str:
    """What the pane shows."""
    if state.at is not None:
        return f"turn {state.turns[state.at].turn}: {state.pane}"
    if state.prompt:
        return f"turn {state.number}: the prompt"
    if state.running:
        return f"turn {state.number}: the reply, {len(state.reply):,} characters"
    if state.trouble:
        return f"turn {state.number}"
    return (
        f"turn {state.turns[-1].turn}: {_last_pane(state)}"
        if state.turns
        else "before the first turn"
    )


def most_scroll(state: State) -> int:
    """How far the pane can be scrolled."""
    room = layout(state, state.size)
    return max(len(pane_lines(state, room.width, room.height)) - room.height, 0)


def _last_pane(state: State) -> Pane:
    """What is shown of the last turn while nothing goes on; where there is room its feedback stands
    beside it.
    """
    return "kernel" if layout(state, state.size).side else "feedback"


def _prompt(state: State, width: int) -> list[Text]:
    done: list[Text] = []
    for message in state.messages:
        done += [
            text(f"{message.role}:", "bold"),
            *prose(message.content, Look(max(width, 8))),
            Text(),
        ]
    return done or [text("no chat has been made yet", DIM)]


def _reply(state: State, width: int, height: int) -> list[Text]:
    if not state.reply.strip():
        return [text("nothing of the reply has come yet; its reasoning is not shown", DIM)]
    rows = [row for line in tail(state.reply, height) for row in _rows(line, max(width, 8))]
    return rows[-height:]


def _rows(line: Line, width: int) -> list[Text]:
    """Prose is broken between words, code anywhere."""
    if len(line) == 1 and not line[0][0]:
        return paragraph(line[0][1], width)
    return wrapped(coloured(line), width)


def _between(state: State, width: int) -> list[Text]:
    if state.phase == "starting":
        return [text("the judge starts, and runs the problem's reference", DIM)]
    trouble = paragraph(state.trouble, width, "bold red") if state.trouble else []
    if not state.turns:
        return [*trouble, *paragraph(_first(state), width, DIM), Text(), *_prompt(state, width)]
    return [*trouble, *([Text()] if trouble else []), *turn_lines(state, _last_pane(state), width)]


def _first(state: State) -> str:
    if state.human:
        return "you are the policy: e opens the editor with the reference in it"
    return "enter asks the model, r gives it a remark first; this is the prompt:"
