"""`kevin-env play --samples` on a terminal: progress of many samples."""

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.advantage import returns_of
from kevin_env.app.play.batch import Batch, BatchRun, best_text, progress_text, sample_line
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    ends,
    fit,
    join,
    marks,
    progress,
    sparkline,
    text,
    that_fit,
)
from kevin_env.app.replay.rows import mark_of
from kevin_env.app.tui.app import SCROLLING, KevinApp, TableScreen
from kevin_env.app.tui.play import WatchScreen
from kevin_env.app.tui.widgets import Lines, Rows
from kevin_env.record import Trajectory, best_turn
from kevin_env.render import speedup_text

_PERIOD = 0.1
"""Seconds between polls for events."""


class SamplesScreen(TableScreen):
    """All samples, and the latest turns."""

    DEFAULT_CSS = """
    SamplesScreen #facts { height: auto; }
    SamplesScreen Rows { height: auto; max-height: 65%; }
    SamplesScreen Lines { height: 1fr; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "stop"),
        Binding("enter,l,right", "open", "open", key_display="enter"),
        Binding("space", "pause", "pause", tooltip="pause after the running turns, or continue"),
        *SCROLLING,
    ]
    app: "SamplesApp"  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._leaving = False

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Static(id="facts")
        yield Rows()
        yield Lines()
        yield from self.foot()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        batch, width = self.app.batch.batch, self.size.width
        episode = batch.samples[0].episode
        known = (each.episode.hardware for each in batch.samples if each.episode.hardware)
        device = next(known, None)
        many = f"  {len(batch.samples)} samples of {episode.config['max_turns']} turns"
        paused = "  paused" if self.app.batch.paused and not batch.over else ""
        title = join((f" {episode.problem.id}", "bold"), many, (paused, "bold yellow"))
        best = text(f"{best_text(batch)} ", "bold green" if batch.best else DIM)
        where = f"{device.name} ({device.device})" if device else "the judge starts"
        facts = (
            text(f" {where}  ·  {episode.model}", DIM),
            progress(batch.taken / max(batch.planned, 1), progress_text(batch), width),
        )
        self.query_one("#title", Static).update(ends(title, best, width))
        self.query_one("#facts", Static).update(Text("\n").join(facts))
        table, count = self.scrolled, len(batch.samples)
        table.styles.height = count + 1
        table.show(sample_columns(batch, width - 4), count, lambda at: sample_cells(batch, at))
        news = [join(" ", sample_line(batch.number(at), turn)) for at, turn in reversed(batch.news)]
        self.query_one(Lines).show(lambda width: [fit(each, width) for each in news], keep=True)

    def action_open(self) -> None:
        self.app.open(self.scrolled.cursor)

    def action_pause(self) -> None:
        self.app.batch.paused = not self.app.batch.paused
        paused = self.app.batch.paused
        self.app.say("paused: running turns finish first" if paused else "continues")
        self.draw()

    def action_leave(self) -> None:
        """Quits; running turns are discarded only at the second press."""
        if not self._leaving and not self.app.batch.batch.over:
            self._leaving = True
            self.app.say("q again stops: running turns are lost, finished ones are kept")
        else:
            self.app.exit()


class SamplesApp(KevinApp[None]):
    """Plays many samples, not started yet."""

    TITLE = "kevin-env play"

    def __init__(self, batch: BatchRun) -> None:
        super().__init__()
        self.batch = batch
        self._all = SamplesScreen()
        self._opened: tuple[WatchScreen, int] | None = None

    def get_default_screen(self) -> SamplesScreen:
        return self._all

    def on_mount(self) -> None:
        self.batch.begin()
        self.set_interval(_PERIOD, self._look)

    def open(self, at: int) -> None:
        screen = WatchScreen(self.batch.batch.samples[at])
        self._opened = screen, at
        self.push_screen(screen)

    def _look(self) -> None:
        try:
            events = list(self.batch.advance())
        except Exception as error:  # raised where the app was started
            self.fail(error)
            return
        if self.batch.batch.over and not events:
            return
        if self.screen is self._all:
            self._all.draw()
        elif self._opened and self.screen is self._opened[0]:
            self._opened[0].show(self.batch.batch.samples[self._opened[1]])

    def play(self) -> tuple[Trajectory, ...]:
        """Plays until the user quits; returns the episodes, which have ended.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        self.run_or_raise()
        return self.batch.finish()


def sample_columns(batch: Batch, width: int) -> tuple[Column, ...]:
    """The columns that fit."""
    most = max(int(each.episode.config["max_turns"]) for each in batch.samples)
    found = (
        Column("sample", 6, "right"),
        Column("turns", min(max(most, 5), 16)),
        Column("best", 7, "right"),
        Column("turn", 4, "right"),
        Column("return", 6, "right"),
        Column("now", 36),
        Column("speedups", min(max(most, 8), 32)),
    )
    return that_fit(found, width)


def sample_cells(batch: Batch, at: int) -> dict[str, Text]:
    """A row of the table of samples; `best` is reached in `turn`."""
    live = batch.samples[at]
    turns, best, returns = live.turns, best_turn(live.turns), returns_of(live.episode)
    leads = batch.best is not None and batch.best[0] == at
    style = "red" if live.trouble else "cyan" if live.running else DIM
    value = speedup_text(best.paid_speedup) if best else ""
    return {
        "sample": text(str(batch.number(at)), "bold" if leads else ""),
        "turns": marks("".join(map(mark_of, turns)), 16),
        "best": text(value, "bold green" if leads else ""),
        "turn": text(str(best.turn) if best else "", DIM),
        "return": text(f"{returns[0]:.2f}" if returns else "", DIM),
        "now": text(live.doing(batch.now or time.monotonic()), style),
        "speedups": text(sparkline([turn.speedup for turn in turns][-32:]), "cyan"),
    }
