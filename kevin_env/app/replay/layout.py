"""Where things stand on a screen of some size."""

from dataclasses import dataclass

from kevin_env.app.replay.state import Size, State

WIDE = 132
"""Columns from which on the timeline stands beside the pane."""
VERY_WIDE = 190
"""Columns from which on the feedback stands beside the kernel."""
LEAST = Size(20, 6)
"""Smaller screens are drawn as if they were of this size, and cut."""

_SIDE = 58
_LIST_CHROME = 5
"""Lines of the list that are no rows: title, rule, heading, rule, foot."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Of the view of one trajectory, in characters."""

    side: int
    """Width of the column with the timeline; 0 when it stands above the pane."""
    timeline: int
    """Turns that the timeline shows."""
    pane_width: int
    pane_height: int
    feedback: int = 0
    """Width of the feedback beside the kernel; 0 when there is no room for it."""


def list_height(size: Size) -> int:
    """How many trajectories the list shows."""
    return max(size.rows - _LIST_CHROME, 1)


def layout(state: State, size: Size) -> Layout:
    """The layout of the focused view, of a half of the screen when two are compared."""
    turns = max(len(state.view.episode.turns), 1)
    inside = size.rows - 4  # title, facts, tabs, foot
    if len(state.views) == 2:
        return _stacked(state, (size.columns - 3) // 2, inside, turns)
    if size.columns < WIDE or not state.timeline:
        return _stacked(state, size.columns, inside, turns)
    height = max(inside - 1, 1)  # a rule
    timeline, width = min(turns, max(height - 12, 3)), size.columns - _SIDE - 3
    if size.columns < VERY_WIDE or state.pane not in ("kernel", "diff"):
        return Layout(_SIDE, timeline, width, height)
    feedback = min((width - 3) * 2 // 5, 100)
    return Layout(_SIDE, timeline, width - feedback - 3, height, feedback)


def _stacked(state: State, width: int, inside: int, turns: int) -> Layout:
    if not state.timeline:
        return Layout(0, 0, width, max(inside, 1))
    shown = min(turns, max(inside // 3, 1))
    return Layout(
        0, shown, width, max(inside - shown - 3, 1)
    )  # its heading, the sparklines, a rule
