"""Console output. Text of a model or a compiler is printed through `shown`, never as markup."""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Literal

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kevin_env.outcome import Category, Outcome, interval_of, speedup_of, visible
from kevin_env.record import Turn, best_turn
from kevin_env.render import speedup_text, turn_cells

if TYPE_CHECKING:
    from rich.progress import Progress

COLORS: dict[Category, str] = {
    "format": "magenta",
    "rules": "magenta",
    "compile": "red",
    "runtime": "red",
    "correctness": "yellow",
    "correct": "green",
}
COLUMNS = ("turn", "verdict", "speedup [95 %]", "score", "return", "seconds")
"""Of a table of turns, see `turn_cells`."""
PIPE_WIDTH = 120
"""Columns of a table that goes to a file or a pipe."""


def make_console(plain: bool = False, stream: Literal["stdout", "stderr"] = "stdout") -> Console:
    """A console that interprets no markup.

    Without a terminal, and if `plain`, there are no colors and no live displays. NO_COLOR is
    respected.
    """
    console = Console(
        stderr=stream == "stderr",
        markup=False,
        emoji=False,
        highlight=False,
        force_terminal=False if plain else None,
    )
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def shown(text: str, style: str = "") -> Text:
    """Untrusted text as it may reach a terminal: no markup, no escape codes."""
    return Text(visible(text), style)


def show(console: Console, text: str, style: str = "") -> None:
    """Prints untrusted text; long lines stay whole."""
    console.print(shown(text, style), soft_wrap=True)


def counted(number: int, name: str) -> str:
    """Such as `1 problem`, `2 problems` or `2 trajectories`."""
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number:,} {name if number == 1 else plural}"


def show_lines(console: Console, lines: Iterable[Text]) -> None:
    """Prints lines that stay whole; without their colors where there is no terminal."""
    for line in lines:
        plain = line if console.is_terminal else Text(line.plain.rstrip())
        console.print(plain, soft_wrap=True)


def verdict_line(outcome: Outcome, score: float) -> Text:
    """Verdict in its color, speedup with its interval, and score on one line."""
    return Text.assemble(
        (f"{outcome.category}/{outcome.kind}", COLORS[outcome.category]),
        f"  {speedup_text(speedup_of(outcome), interval_of(outcome))}".rstrip(),
        f"  score {score:.2f}",
    )


def turn_line(turn: Turn, why: bool = False) -> Text:
    """As `verdict_line`, with the seconds, and if `why` the message of a turn without a speedup."""
    line = verdict_line(turn.outcome, turn.score).append(f"  ({turn.seconds.total:.1f} s)")
    if why and turn.speedup is None:
        line.append("  ").append_text(shown(turn.outcome.message, "bright_black"))
    return line


def print_turn(console: Console, turn: Turn) -> None:
    """Prints a turn's number and `turn_line`, with why."""
    console.print(f"turn {turn.turn} ", turn_line(turn, why=True))


def best_at(turns: Sequence[Turn]) -> int:
    """Index of `best_turn`; of the last correct turn if none was timed, else of the last one."""
    best = best_turn(turns)
    if best is not None:
        return turns.index(best)
    right = [n for n, turn in enumerate(turns) if turn.category == "correct"]
    return right[-1] if right else max(len(turns) - 1, 0)


def best_text(best: Turn, sample: str = "") -> str:
    """The fastest turn, such as `best 2.00x (turn 2, noisy)`, with its sample before the turn."""
    noisy = ", noisy" * (best.kind == "too_noisy")
    why = ", in Triton's interpreter" if best.interpreted else noisy
    return f"best {speedup_text(best.speedup)} ({sample}turn {best.turn}{why})"


def ended_text(reason: str) -> str:
    """Why an episode ended."""
    return "all turns played" if reason == "max_turns" else f"ended: {reason}"


def turns_table(turns: Sequence[Turn], returns: Sequence[float], model: str = "") -> Table:
    """One row a turn: verdict, speedup with its interval, score, return and seconds."""
    table = Table()
    for name in COLUMNS:
        table.add_column(
            name, justify="right" if name in ("score", "return", "seconds") else "left"
        )
    for turn, value in zip(turns, returns, strict=True):
        cells = turn_cells(turn, value, model)
        table.add_row(
            *(Text(cells[name], COLORS[turn.category] * (name == "verdict")) for name in COLUMNS)
        )
    return table


def progress_of(console: Console) -> "Progress":
    """A bar with counts, time and a description; nothing where there is no terminal."""
    # Imported where it is shown: it takes 10 ms.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def waiting(console: Console, words: Callable[[], str]) -> Iterator[None]:
    """On a terminal, shows what the block is waiting for, with a spinner."""
    spinner = Spinner("dots")

    def line() -> Spinner:
        spinner.update(text=shown(words(), "bright_black"))
        return spinner

    if not console.is_terminal:
        yield
        return
    with Live(console=console, get_renderable=line, transient=True):
        yield


@contextmanager
def on_whole_screen(console: Console, picture: Callable[[], Text]) -> Iterator[None]:
    """Shows a picture on the whole screen, four times a second, while the block runs.

    When the terminal closes, the process exits: turns are on disk, and writing may block forever.
    """
    over = threading.Event()

    def watch() -> None:
        wait_for_hang_up(console.file)
        if not over.is_set():
            os._exit(128 + signal.SIGHUP)

    if console.file.isatty():
        threading.Thread(target=watch, daemon=True).start()
    with Live(console=console, get_renderable=picture, screen=True, refresh_per_second=4) as live:
        live.refresh()
        try:
            yield
        finally:
            over.set()


def wait_for_hang_up(terminal: IO[str]) -> None:
    """Returns when a terminal has closed."""
    poll = select.poll()
    poll.register(terminal, 0)  # a hang-up is always reported
    poll.poll()
