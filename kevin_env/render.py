"""An episode's turns as a table of plain text."""

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kevin_env.episode import Episode
from kevin_env.record import Turn

_WIDTH = 100
_HEADINGS = ("Turn", "Verdict", "Speedup", "Score", "Seconds", "Message")


def turns_table(episode: Episode) -> str:
    """The turns so far, without colours; nothing in them is taken as markup."""
    title = f"{episode.problem.id}, turn {len(episode.turns)} of {episode.settings.max_turns}"
    table = Table(title=Text(title), width=_WIDTH)
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=heading != "Message")
    for turn in episode.turns:
        table.add_row(*map(Text, _cells(turn)))
    page = io.StringIO()
    Console(file=page, width=_WIDTH, color_system=None).print(table)
    return page.getvalue()


def _cells(turn: Turn) -> tuple[str, ...]:
    speedup = "" if turn.speedup is None else f"{turn.speedup:.2f}x"
    verdict = f"{turn.category}/{turn.kind}"
    return str(turn.turn), verdict, speedup, f"{turn.score:.2f}", f"{turn.seconds.total:.1f}", turn.outcome.message
