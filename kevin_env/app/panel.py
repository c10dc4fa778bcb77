"""Panels for a verdict on a terminal. Lines are broken between words only."""

from collections.abc import Sequence

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from kevin_env.app.replay.code import clean
from kevin_env.app.replay.pieces import DARK, DIM, Look, Tints, fit, paragraph, text
from kevin_env.app.screen import COLORS
from kevin_env.outcome import Category

MOST_COLUMNS = 112
_GROUND = "#d4d9e0 on #121212"
"""The tints of diffs suit a dark background only."""
_OF_256: Tints = ("#005f00", "#5f0000", "#008700", "#870000")
"""`DARK` in the palette of 256 colors; the nearest ones would be other hues."""


def look_of(console: Console) -> Look:
    """How lines in a panel are drawn."""
    tints = _OF_256 if console.color_system == "256" else DARK
    width = min(console.width, MOST_COLUMNS) - 4
    return Look(width, tints=tints if _has_colors(console) else None)


def panel_lines(words: str, width: int) -> list[Text]:
    """Text as lines of a panel.

    Indented lines are source, and marks below it, whose columns matter: they are cut, not wrapped.
    """
    done: list[Text] = []
    for line in clean(words).split("\n"):
        done += [fit(text(line), width)] if line[:1].isspace() else paragraph(line, width)
    return done


def show_panel(
    console: Console, title: Text, lines: Sequence[Text], note: str, category: Category
) -> None:
    """Prints a panel in the color of a category, with a note at its foot."""
    panel = Panel(
        Text("\n", no_wrap=True).join(lines),
        title=title,
        title_align="left",
        subtitle=text(note, DIM),
        subtitle_align="right",
        border_style=COLORS[category],
        style=_GROUND if _has_colors(console) else "",
        width=look_of(console).width + 4,
    )
    console.print(panel)


def _has_colors(console: Console) -> bool:
    return not console.no_color and console.color_system in ("256", "truecolor")
