"""`render(state, size)`: the whole screen as lines, each exactly as wide as the screen."""

from rich.text import Text

from kevin_env.app.replay import help_screen
from kevin_env.app.replay.layout import LEAST
from kevin_env.app.replay.list_screen import list_screen
from kevin_env.app.replay.pieces import DIM, Column, ends, fit, heading, join, paragraph, rule, text
from kevin_env.app.replay.state import PERIODS, Size, State
from kevin_env.app.replay.view_screen import view_screen

Frame = tuple[Text, ...]

_FEET = {
    "list": (
        *(
            ("↑↓", "move"),
            ("enter", "open"),
            ("/", "filter"),
            ("s", "sort"),
            ("r", "reverse"),
            ("m", "mark"),
        ),
        *(("c", "compare"), ("f", "follow"), ("!", "unreadable"), ("?", "help"), ("q", "quit")),
    ),
    "view": (
        *(
            ("←→", "turn"),
            ("↑↓", "scroll"),
            ("tab", "pane"),
            ("d", "diff"),
            ("b", "best"),
            ("e", "error"),
            ("/", "search"),
        ),
        *(("a", "play"), ("[ ]", "trajectory"), ("c", "compare"), ("?", "help"), ("q", "back")),
    ),
    "compare": (
        *(
            ("o", "other side"),
            ("←→", "turn"),
            ("↑↓", "scroll"),
            ("tab", "pane"),
            ("d", "diff"),
            ("s", "columns"),
        ),
        *(("/", "search"), ("?", "help"), ("q", "back")),
    ),
    "help": (("↑↓", "scroll"), ("q", "close")),
}
_ASKING = {
    "filter": "filter",
    "search": "search",
    "row": "go to number",
    "turn": "go to turn",
    "base": "diff from turn",
}


def render(state: State, size: Size) -> Frame:
    """The screen: `size.rows` lines of `size.columns` characters. Nothing in them is markup or an
    escape code.
    """
    room = Size(max(size.columns, LEAST.columns), max(size.rows, LEAST.rows))
    body = [*_body(state, room)[: room.rows - 1]]
    body += [Text(" " * room.columns)] * (room.rows - 1 - len(body))
    frame = [*body, _foot(state, room.columns)]
    return tuple(fit(line, size.columns) for line in frame[: size.rows])


def _body(state: State, size: Size) -> list[Text]:
    if state.help:
        return help_screen.help_lines(state, size)
    if state.screen == "bad":
        return _bad_screen(state, size)
    return list_screen(state, size) if state.screen == "list" else view_screen(state, size)


def _foot(state: State, width: int) -> Text:
    if state.typing is not None:
        trouble = f"  {state.listing.query.trouble}" if state.typing.what == "filter" else ""
        asked = join(
            (f" {_ASKING[state.typing.what]}: ", "bold"),
            state.typing.text,
            ("▏", "bold"),
            (trouble, "yellow"),
        )
        return fit(asked, width)
    if state.notice:
        return fit(text(f" {state.notice}", "bold yellow"), width)
    name = "help" if state.help or state.screen == "bad" else state.screen
    keys = _FEET["compare" if name == "view" and len(state.views) == 2 else name]
    right = text(_mode(state), "bold")
    return ends(_keys(keys, width - right.cell_len - 1), join(right, " "), width)


def _mode(state: State) -> str:
    playing = [f"▶ {PERIODS[state.speed]:g} s"] if state.playing else []
    return "  ".join([*playing, *(["follow"] if state.follow else [])])


def _keys(keys: tuple[tuple[str, str], ...], width: int) -> Text:
    """As many keys as there is room for; help and the way out always."""
    kept = list(keys)
    while len(kept) > 2 and sum(len(key) + len(name) + 3 for key, name in kept) > width:
        del kept[-3]
    return join(" ", *(part for key, name in kept for part in ((key, "bold"), (f" {name}  ", DIM))))


def _bad_screen(state: State, size: Size) -> list[Text]:
    bad = state.listing.bad
    title = text(f" {len(bad)} lines that cannot be read; everything else is in the list", "bold")
    columns = (Column("line", 8, "right"), Column("what is wrong", max(size.columns - 12, 8)))
    lines = [title, rule(size.columns), heading(columns)]
    for each in bad[state.help_scroll : state.help_scroll + size.rows]:
        body = paragraph(f"{each.path.name}: {each.reason}", columns[1].width)
        lines += [
            join((f"{each.line if n == 0 else '':>8}  ", DIM), part) for n, part in enumerate(body)
        ]
    return lines if bad else [*lines, text("  every line could be read", DIM)]
