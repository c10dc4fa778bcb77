"""The tables of a screen: a list of episodes, and the turns of one."""

from collections.abc import Sequence

from rich.text import Text

from kevin_env.app.replay.pieces import DIM, GAP, Column, bar, marks, sparkline, text, that_fit
from kevin_env.app.replay.rows import Row, mark_of
from kevin_env.app.screen import COLORS
from kevin_env.record import Turn
from kevin_env.render import speedup_text, turn_cells

_VERDICT, _BAR = 26, 24
"""Maximum width of a verdict, and the width of a bar."""
_NAMES = 44
"""Minimum total width of problem and model with their gaps, where there is room."""


def list_columns(shown: Sequence[Row], width: int) -> tuple[Column, ...]:
    """The columns that fit; problem and model share the remaining width."""
    longest = max((len(row.marks) for row in shown[:200]), default=4)
    turns = min(max(longest, 5), 8 if width < 100 else 16 if width < 160 else 32)
    fixed = [
        Column("turns", turns),
        Column("best", 7, "right"),
        Column("return", 7, "right"),
        Column("recorded", 16),
        Column("speedups", max(turns, 8)),
        Column("ended", 11),
        Column("id", 8),
        Column("device", 16),
    ]
    number = Column("#", max(len(f"{len(shown):,}"), 3), "right")
    kept = that_fit(fixed, width - number.width - min(_NAMES, width * 3 // 5))
    left = width - sum(column.width + GAP for column in (number, *kept)) - GAP
    problem = max(min(left * 3 // 5, 48), 8)
    model = max(min(left - problem, 40), 6)
    return (number, Column("problem", problem), Column("model", model), *kept)


def list_cells(row: Row, number: int, columns: Sequence[Column]) -> dict[str, Text]:
    """A row of the list."""
    best, width = row.best, next((column.width for column in columns if column.name == "turns"), 0)
    style = DIM if best is None else "bold green" if best >= 1 else ""
    return {
        "#": text(f"{number + 1:,}", DIM),
        "problem": text(row.problem),
        "model": text(row.model or "-", "" if row.model else DIM),
        "turns": marks(row.marks, width),
        "best": text(speedup_text(best) or "-", style),
        "return": text("-", DIM) if row.value is None else text(f"{row.value:.3f}"),
        "speedups": text(sparkline(row.speedups[-width:]), "cyan"),
        "ended": text(row.stop_reason or "running", DIM if row.stop_reason else "cyan"),
        "device": text(row.device, DIM),
        "recorded": text(row.created[:16].replace("T", " "), DIM),
        "id": text(row.episode_id[:8], DIM),
    }


def turn_columns(turns: Sequence[Turn], width: int, model: str) -> tuple[Column, ...]:
    """Of a table of turns; narrower ones leave out the last columns."""
    longest = max((len(turn_cells(turn, 0.0, model)["verdict"]) for turn in turns), default=0)
    found = (
        Column("", 1),
        Column("turn", 4, "right"),
        Column("verdict", min(max(longest, 15), _VERDICT, max(width - 22, 8))),
        Column("speedup", 7, "right"),
        Column("score", 6, "right"),
        Column("return", 6, "right"),
        Column("95 % interval", 14),
        Column("seconds", 7, "right"),
        Column("speedup ", _BAR),
    )
    return that_fit(found, width)


def turn_row(turn: Turn, value: float, best: bool, most: float, model: str) -> dict[str, Text]:
    """A row of a table of turns; `value` is its return, `most` the largest speedup of all turns."""
    fast = "bold green" if best else "green" if (turn.speedup or 0.0) >= 1 else ""
    color = COLORS[turn.category]
    styles = {
        "": color, "turn": "", "verdict": color, "speedup": fast,
        "score": "" if turn.score else DIM, "return": "", "95 % interval": DIM, "seconds": DIM,
        "speedup ": "cyan",
    }  # fmt: skip
    share = bar((turn.speedup or 0.0) / most, _BAR)
    words = turn_cells(turn, value, model) | {"": mark_of(turn), "speedup ": share}
    return {name: text(words[name], style) for name, style in styles.items()}
