"""`render(state, size)`: the whole screen as lines, each exactly as wide as the screen."""

from rich.text import Text

from kevin_env.app.play.help_screen import help_lines
from kevin_env.app.play.layout import Layout, layout
from kevin_env.app.play.panes import pane_lines, pane_title, turn_lines
from kevin_env.app.play.plain import best_text
from kevin_env.app.play.state import Asking, Phase, State, spent
from kevin_env.app.play.table import table_lines
from kevin_env.app.replay.layout import LEAST
from kevin_env.app.replay.pieces import DIM, beside, ends, fit, join, rule, speedup, text, window
from kevin_env.app.replay.state import Size
from kevin_env.app.screen import best_turn
from kevin_env.judge.api import Seconds
from kevin_env.render import speedup_text

Frame = tuple[Text, ...]

_WORDS: dict[Phase, str] = {
    "starting": "starting",
    "waiting": "waiting for you",
    "replying": "the model replies",
    "judging": "the judge at work",
    "ended": "",
}
_ASKING: dict[Asking, str] = {
    "remark": "remark before the next turn",
    "again": "take again from turn",
}
_TURN = (("r", "remark"), ("e", "edit"), ("t", "again"), ("p", "prompt"))
_WAITING = (("enter", "next"), ("space", "run on"), *_TURN)
_HUMAN = (("e", "edit"), ("t", "again"), ("p", "prompt"), ("↑↓", "scroll"))
_ENDED = (("t", "take a turn again"), ("←→", "turn"), ("tab", "pane"), ("↑↓", "scroll"))


def render(state: State, size: Size) -> Frame:
    """The screen: `size.rows` lines of `size.columns` characters. Nothing in them is markup or an
    escape code.
    """
    room = Size(max(size.columns, LEAST.columns), max(size.rows, LEAST.rows))
    body = help_lines(room.columns) if state.help else _body(state, room)
    body = body[: room.rows - 1]
    body += [Text(" " * room.columns)] * (room.rows - 1 - len(body))
    return tuple(
        fit(line, size.columns) for line in [*body, _foot(state, room.columns)][: size.rows]
    )


def _body(state: State, size: Size) -> list[Text]:
    room = layout(state, size)
    above = [_title(state, size.columns), _facts(state, size.columns)]
    table = table_lines(state, room.side or room.width, room.table)
    pane = [_heading(pane_title(state), room.width), *_pane(state, room)]
    if not room.side:
        return [*above, *table, *pane, _stages(state, size.columns)]
    side = [*table, Text(), *_side_pane(state, room)]
    return [
        *above,
        *beside(window(side, 0, room.height + 1, room.side), pane),
        _stages(state, size.columns),
    ]


def _title(state: State, width: int) -> Text:
    of = state.episode.config.get("max_turns", "?")
    turn = (
        f"turn {state.number} of {of}"
        if state.phase != "ended"
        else f"{len(state.turns)} of {of} turns"
    )
    doing = state.episode.stop_reason or _WORDS[state.phase]
    seconds = (
        f" {max(state.now - state.since, 0.0):.0f} s"
        if state.running or state.phase == "starting"
        else ""
    )
    left = join(
        (f" {state.episode.problem.id}", "bold"),
        f"  {turn}",
        (f"  {doing}{seconds}", _colour(state)),
    )
    return ends(left, _best(state), width)


def _colour(state: State) -> str:
    return (
        "bold red"
        if state.trouble
        else {"waiting": "bold yellow", "ended": "bold"}.get(state.phase, "cyan")
    )


def _best(state: State) -> Text:
    best = best_turn(state.turns)
    if best is None:
        return text(f"{best_text(state.turns)} " if state.turns else "", DIM)
    return join(
        ("best ", DIM), (speedup(best.speedup), "bold green"), (f" (turn {best.turn}) ", DIM)
    )


def _facts(state: State, width: int) -> Text:
    device = state.episode.hardware
    where = f"{device.name} ({device.device})" if device else "no device yet"
    return ends(
        text(f" {where}  ·  {state.episode.model}", DIM), text(f"{_how(state)} ", "bold"), width
    )


def _how(state: State) -> str:
    """How it goes on after this turn."""
    if state.edit_next:
        return "the editor is next"
    return (
        ""
        if state.human or state.phase == "ended"
        else "step by step"
        if state.step
        else "running on"
    )


def _heading(title: str, width: int) -> Text:
    name = fit(text(title, "bold"), min(len(title), max(width - 5, 1)))
    return fit(join(("── ", DIM), name, " ", rule(max(width - name.cell_len - 4, 0))), width)


def _pane(state: State, room: Layout) -> list[Text]:
    lines = pane_lines(state, room.width, room.height)
    return window(
        lines, min(state.scroll, max(len(lines) - room.height, 0)), room.height, room.width
    )


def _side_pane(state: State, room: Layout) -> list[Text]:
    """The feedback of the turn that is looked at or else the last one, below the table; its kernel
    beside feedback.
    """
    turn = state.shown
    if turn is None:
        return []
    pane = "kernel" if state.at is not None and state.pane == "feedback" else "feedback"
    return [_heading(f"turn {turn.turn}: {pane}", room.side), *turn_lines(state, pane, room.side)]


def _stages(state: State, width: int) -> Text:
    """How long each stage has taken, of the running judgement or of the turn that is looked at;
    else how that ended.
    """
    if state.phase == "judging" and state.at is None:
        seconds = spent(state.stages, state.now)
        now = state.stages[-1][0] if state.stages else ""
        parts = [
            (f"{name} {value:.1f}  ", "bold" if name == now else DIM)
            for name, value in seconds.items()
        ]
        return ends(
            join((" judge: ", DIM), *parts), text(f"{sum(seconds.values()):.1f} s ", DIM), width
        )
    turn = state.shown
    if turn is None:
        return text("")
    if state.running and state.at is None:
        how = speedup_text(turn.speedup, turn.speedup_interval) or turn.outcome.message
        return text(f" turn {turn.turn} was {turn.category}/{turn.kind}: {how}", DIM)
    values = {name: getattr(turn.seconds, name) for name in Seconds.model_fields}
    parts = [(f"{name} {value:.1f}  ", DIM) for name, value in values.items() if value]
    return (
        ends(join((" judge: ", DIM), *parts), text(f"{turn.seconds.total:.1f} s ", DIM), width)
        if parts
        else text("")
    )


def _foot(state: State, width: int) -> Text:
    if state.typing is not None:
        asked = join((f" {_ASKING[state.typing.what]}: ", "bold"), state.typing.text, ("▏", "bold"))
        over = asked.cell_len - width
        return fit(asked, width) if over <= 0 else fit(join("…", asked[over + 1 :]), width)
    if state.notice:
        return fit(text(f" {state.notice}", "bold yellow"), width)
    right = text(f"remark: {state.remark} ", "yellow") if state.remark else text("")
    return ends(
        _keys(state, width - min(right.cell_len, width // 2) - 1),
        fit(right, min(right.cell_len, width // 2)),
        width,
    )


def _keys(state: State, width: int) -> Text:
    """As many keys as there is room for; help and the way out always."""
    kept = [*_keys_now(state), ("?", "help"), ("q", "leave" if state.phase == "ended" else "stop")]
    while len(kept) > 2 and sum(len(key) + len(name) + 3 for key, name in kept) > width:
        del kept[-3]
    return join(" ", *(part for key, name in kept for part in ((key, "bold"), (f" {name}  ", DIM))))


def _keys_now(state: State) -> tuple[tuple[str, str], ...]:
    if state.phase == "ended":
        return _ENDED
    if state.human and not state.running:
        return _HUMAN
    if state.phase == "waiting":
        return _WAITING
    running = (("space", "run on" if state.step else "pause"), *_TURN)
    return running if state.running else running[:2]
