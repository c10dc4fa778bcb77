"""Where things stand on a screen of some size."""

from dataclasses import dataclass

from kevin_env.app.play.state import State
from kevin_env.app.replay.layout import WIDE
from kevin_env.app.replay.state import Size

_SIDE = 64
"""Columns of the table beside the pane at least; all of it takes `_WHOLE`, once the pane has
`_PANE`.
"""
_WHOLE, _PANE = 80, 77
_AROUND = 5
"""Lines beside table and pane: title, facts, the pane's heading, stages, foot."""


@dataclass(frozen=True, slots=True)
class Layout:
    """In characters."""

    side: int
    """Width of the column with the table; 0 when it stands above the pane."""
    table: int
    """Turns that the table shows."""
    width: int
    height: int
    """Of the pane."""


def layout(state: State, size: Size) -> Layout:
    """The layout of the screen."""
    inside = max(size.rows - _AROUND, 1)
    rows = max(len(state.turns) + (state.phase != "ended"), 1)
    if size.columns >= WIDE:
        side = min(max(_SIDE, size.columns - 3 - _PANE), _WHOLE)
        return Layout(side, min(rows, max(inside // 2, 1)), size.columns - side - 3, inside)
    shown = min(rows, max(inside // 3, 1))
    return Layout(0, shown, size.columns, max(inside - shown - 1, 1))
