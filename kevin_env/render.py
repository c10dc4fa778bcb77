"""The turns of an episode as table cells, and as a plain table."""

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kevin_env.outcome import Outcome, interval_of, speedup_of
from kevin_env.record import Turn
from kevin_env.wording import ratio

if TYPE_CHECKING:
    from kevin_env.episode import Episode

_WIDTH = 100
_COLUMNS = ("turn", "verdict", "speedup", "score", "seconds", "message")


def turn_cells(turn: Turn, value: float, model: str = "") -> dict[str, str]:
    """The cells of a turn whose return is `value`, by column. The message is untrusted.

    A turn of a person is marked as such unless the whole episode is a person's (`model`).
    """
    return {
        "turn": str(turn.turn),
        "verdict": f"{turn.category}/{turn.kind}"
        + " by hand" * (turn.by_person and model != "human"),
        "speedup": speedup_text(turn.speedup),
        "speedup [95 %]": speedup_text(turn.speedup, turn.speedup_interval),
        "95 % interval": interval_text(turn.speedup_interval),
        "score": f"{turn.score:.2f}",
        "return": f"{value:.2f}",
        "seconds": f"{turn.seconds.total:.1f}",
        "message": turn.outcome.message,
    }


def speedup_text(speedup: float | None, interval: tuple[float, float] | None = None) -> str:
    """Such as `2.31x [2.20, 2.41]`; empty without a speedup."""
    return "" if speedup is None else f"{figure_text(speedup)}x {interval_text(interval)}".rstrip()


def ending_text(outcome: Outcome) -> str:
    """Such as `correct/timed 2.10x [2.05, 2.15]`."""
    speedup = speedup_text(speedup_of(outcome), interval_of(outcome))
    return f"{outcome.category}/{outcome.kind} {speedup}".rstrip()


def interval_text(interval: tuple[float, float] | None) -> str:
    """Such as `[2.20, 2.41]`; empty without one."""
    return f"[{figure_text(interval[0])}, {figure_text(interval[1])}]" if interval else ""


def figure_text(speedup: float) -> str:
    """A speedup with two decimals, or two digits if that is more."""
    return ratio(speedup, 2) if 0 < speedup < 0.1 else f"{speedup:.2f}"


def plain_table(episode: "Episode") -> str:
    """The turns so far, without colors; nothing in them is taken as markup."""
    title = f"{episode.problem.id}, turn {len(episode.turns)} of {episode.settings.max_turns}"
    table = Table(title=Text(title), width=_WIDTH)
    for name in _COLUMNS:
        table.add_column(name, no_wrap=name != "message")
    for turn, value in zip(episode.turns, episode.returns, strict=True):
        cells = turn_cells(turn, value)
        table.add_row(*(Text(cells[name]) for name in _COLUMNS))
    page = io.StringIO()
    Console(file=page, width=_WIDTH, color_system=None).print(table)
    return page.getvalue()
