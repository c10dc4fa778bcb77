"""Small parts of a screen: lines of a given width, columns and bars, all from clean text."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kevin_env.app.replay.code import Kind, Line, clean
from kevin_env.app.replay.describe import Base
from kevin_env.app.replay.rows import CATEGORIES
from kevin_env.app.screen import COLORS
from kevin_env.record import Turn

CODE: dict[Kind, str] = {
    "": "",
    "comment": "bright_black",
    "keyword": "magenta",
    "string": "green",
    "number": "cyan",
    "function": "bold",
    "builtin": "cyan",
    "decorator": "yellow",
}
"""Only the terminal's own colors, which suit dark and light ones."""

Tints = tuple[str, str, str, str]
"""Backgrounds of a diff: added and removed lines, then what was added and removed within them."""
DARK: Tints = ("#12301c", "#3a1a1e", "#1f6b37", "#8a2d35")
LIGHT: Tints = ("#dafbe1", "#ffebe9", "#9be9a8", "#ffb8b0")


@dataclass(frozen=True, slots=True)
class Look:
    """How panes are drawn."""

    width: int
    wrap: bool = True
    reasoning: bool = True
    side_by_side: bool = False
    base: Base = "previous"
    other: Turn | None = None
    """The turn of the other trajectory, when two are compared."""
    tints: Tints | None = None
    """None for the colors of the terminal alone."""


DIM = "bright_black"
GAP = 2
"""Characters between two columns."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def text(words: str, style: str = "") -> Text:
    """Untrusted text as one piece of a line."""
    return _styled(clean(words).replace("\n", " "), style)


def _styled(words: str, style: str) -> Text:
    """One span: Textual gives names of colors in the style of a whole text its own meaning."""
    return Text(no_wrap=True, end="").append(words, style)


def join(*parts: "Text | str | tuple[str, str]") -> Text:
    """Joins parts to one line."""
    line = Text(no_wrap=True, end="")
    for part in parts:
        line.append_text(
            part if isinstance(part, Text) else text(*((part,) if isinstance(part, str) else part))
        )
    return line


def colored(line: Line) -> Text:
    """A line of code."""
    return Text.assemble(*((piece, CODE[kind]) for kind, piece in line), no_wrap=True, end="")


def fit(line: Text, width: int, justify: Literal["left", "right"] = "left") -> Text:
    """A line cut or filled to `width` characters; what is cut off shows as an ellipsis."""
    line = line.copy()
    line.truncate(max(width, 0), overflow="ellipsis")
    line.align(justify, max(width, 0))
    return line


def ends(left: Text, right: Text, width: int) -> Text:
    """One line with text at both ends; the left one is cut off first."""
    room = max(width - right.cell_len - 1, 0)
    return fit(join(fit(left, room), " ", right), width)


def wrapped(line: Text, width: int, head: Text | str = "", hang: str = "") -> list[Text]:
    """A line after `head`, broken between words to `width` columns.

    Further lines begin with `hang` and the line's own indentation.
    """
    room = width - cell_len(hang)
    if line.cell_len <= room:
        return [join(head, line)]
    indent = line.plain[: len(line.plain) - len(line.plain.lstrip())][: max(room, 0) // 2]
    rest, narrow = line[len(indent) :], max(room - len(indent), 8)
    pieces = rest.wrap(_console(), narrow, overflow="fold", no_wrap=False)
    return [join(hang if at else head, indent, piece) for at, piece in enumerate(pieces)]


@functools.cache
def _console() -> Console:
    """Wrapping needs one, which takes longer to make than a line takes to wrap."""
    return Console()


def paragraph(words: str, width: int, style: str = "") -> list[Text]:
    """Clean prose broken between words; its own line breaks stay."""
    lines = clean(words).rstrip().split("\n")
    return [piece for line in lines for piece in wrapped(_styled(line, style), max(width, 8))]


def sparkline(values: Iterable[float | None], most: float | None = None) -> str:
    """One block per value, from 0 to the largest; a dot where there is none."""
    known = list(values)
    top = most or max((each for each in known if each is not None), default=0.0) or 1.0
    return "".join(
        "·" if v is None else _BLOCKS[min(int(max(v, 0.0) / top * 7.999), 7)] for v in known
    )


def bar(share: float, width: int) -> str:
    """A bar of `share` (0 to 1) of `width` characters, in eighths."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def progress(share: float, words: str, width: int) -> Text:
    """A line with a progress bar for `share` (0 to 1), followed by `words`."""
    room = max(width - len(words) - 4, 4)
    done = round(min(max(share, 0.0), 1.0) * room)
    return join(" ", ("━" * done, "cyan"), ("─" * (room - done), DIM), f"  {words}")


def clock(seconds: float) -> str:
    """Such as `1:07`, or `2:00:05`."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def pace_text(done: int, planned: int, new: int, seconds: float) -> str:
    """Turns so far, and their rate and the time left if `new` of them took these seconds."""
    words = f"{done} of {planned} turns, {clock(seconds)} elapsed"
    if not new or seconds <= 0:
        return words
    left = f", about {clock(seconds / new * (planned - done))} left" if planned > done else ""
    return f"{words}, {60 * new / seconds:.1f} a minute{left}"


def marks(signs: str, width: int) -> Text:
    """The outcomes of an episode's turns, a colored character each; the first ones are cut off."""
    signs = signs if len(signs) <= width else "…" + signs[len(signs) - width + 1 :]
    line = Text(no_wrap=True, end="")
    for sign in signs:
        line.append(sign, COLORS[CATEGORIES[sign]] if sign in CATEGORIES else DIM)
    return line


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading and its width."""

    name: str
    width: int
    justify: Literal["left", "right"] = "left"


def that_fit(columns: Sequence[Column], width: int) -> tuple[Column, ...]:
    """The first columns, as many as fit."""
    kept: list[Column] = []
    for column in columns:
        width -= column.width + (GAP if kept else 0)
        if width < 0:
            break
        kept.append(column)
    return tuple(kept)


def table_line(columns: Sequence[Column], cells: Mapping[str, Text]) -> Text:
    """One line of a table; cells that no column shows are left out."""
    return Text(" " * GAP).join(
        [fit(cells.get(column.name, Text()), column.width, column.justify) for column in columns]
    )


def heading(columns: Sequence[Column]) -> Text:
    """The line above a table."""
    return table_line(columns, {column.name: text(column.name, DIM) for column in columns})


def overview(
    head: Sequence[Text],
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Text]],
    news: Iterable[Text],
    size: tuple[int, int],
) -> Text:
    """A screen of facts, a table in up to two thirds of it, and events. Size: columns, rows."""
    width, height = size
    room = max(min(len(rows), (height - len(head) - 2) * 2 // 3), 1)
    more = f" and {len(rows) - room} more " if rows[room:] else ""
    lines = [
        *head,
        join(" ", heading(columns)),
        *(join(" ", table_line(columns, row)) for row in rows[:room]),
        text(more.ljust(width, "─"), DIM),
        *(join(" ", line) for line in news),
    ]
    return Text("\n").join(fit(line, width) for line in lines[:height])
