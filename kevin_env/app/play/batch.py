"""Many samples of one problem, played concurrently."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from kevin_env.advantage import returns_of
from kevin_env.app.play import plain
from kevin_env.app.play.live import Ended, Event, Failed, Judged, Live, Started, happened
from kevin_env.app.play.session import Session
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    ends,
    join,
    marks,
    overview,
    pace_text,
    progress,
    sparkline,
    text,
    that_fit,
)
from kevin_env.app.replay.rows import mark_of
from kevin_env.app.screen import best_text, counted, ended_text, on_whole_screen, show, turn_line
from kevin_env.record import Trajectory, Turn, best_turn
from kevin_env.render import speedup_text

_NEWS = 100
"""Number of latest turns to keep."""
_PERIOD = 0.05
"""Seconds between polls for events."""


@dataclass(frozen=True, slots=True)
class Batch:
    """All samples. Times are seconds of one clock."""

    samples: tuple[Live, ...]
    started: float = 0.0
    now: float = 0.0
    before: int = 0
    """Turns that were recorded before this process started."""
    news: tuple[tuple[int, Turn], ...] = ()
    """The latest turns with the indices of their samples, the newest last."""

    @property
    def taken(self) -> int:
        """Turns that have been judged."""
        return sum(len(sample.turns) for sample in self.samples)

    @property
    def planned(self) -> int:
        """Total number of turns at the end."""
        return sum(sample.planned for sample in self.samples)

    @property
    def over(self) -> bool:
        """Whether every sample has ended."""
        return all(sample.phase == "ended" for sample in self.samples)

    @property
    def best(self) -> tuple[int, Turn] | None:
        """The fastest correct turn of all, and the index of its sample."""
        found = [
            (at, turn)
            for at, sample in enumerate(self.samples)
            if (turn := best_turn(sample.turns)) is not None
        ]
        return max(found, key=lambda pair: pair[1].speedup or 0.0, default=None)

    def number(self, at: int) -> int:
        """The recorded number of a sample, or its index if it has none."""
        sample = self.samples[at].episode.sample
        return at if sample is None else sample

    def after(self, event: Event, at: int) -> "Batch":
        """The batch after something happened to the sample at index `at`."""
        before = self.samples[at]
        after = happened(before, event)
        new = after.turns[len(before.turns) :] if isinstance(event, Judged) else ()
        samples = (*self.samples[:at], after, *self.samples[at + 1 :])
        news = (*self.news, *((at, turn) for turn in new))[-_NEWS:]
        return replace(self, samples=samples, news=news)


def batch_of(episodes: Sequence[Trajectory], now: float) -> Batch:
    """The initial batch."""
    samples = tuple(Live(each, since=now) for each in episodes)
    return Batch(samples, started=now, now=now, before=sum(len(each.turns) for each in episodes))


def progress_text(batch: Batch) -> str:
    """Turns played so far, elapsed time, the rate, and remaining time."""
    new, seconds = batch.taken - batch.before, batch.now - batch.started
    return pace_text(batch.taken, batch.planned, new, seconds)


def best_of(batch: Batch) -> str:
    """The running best."""
    if batch.best is None:
        return "none timed yet"
    at, turn = batch.best
    return best_text(turn, f"sample {batch.number(at)}, ")


def sample_line(number: int, turn: Turn) -> Text:
    """One turn of a sample on one line."""
    return join(f"sample {number:<3} turn {turn.turn:<3} ", turn_line(turn, why=True))


def picture(batch: Batch, width: int, height: int) -> Text:
    """Progress, samples and the latest turns."""
    episode = batch.samples[0].episode
    known = (each.episode.hardware for each in batch.samples if each.episode.hardware)
    device = next(known, None)
    many = f"  {len(batch.samples)} samples of {episode.config['max_turns']} turns"
    where = f"{device.name} ({device.device})" if device else "the judge starts"
    best = text(f"{best_of(batch)} ", "bold green" if batch.best else DIM)
    head = (
        ends(join((f" {episode.problem.id}", "bold"), many), best, width),
        text(f" {where}  ·  {episode.model}", DIM),
        progress(batch.taken / max(batch.planned, 1), progress_text(batch), width),
    )
    rows = [_cells(batch, at) for at in range(len(batch.samples))]
    news = [sample_line(batch.number(at), turn) for at, turn in reversed(batch.news)]
    return overview(head, _columns(batch, width - 2), rows, news, (width, height))


class BatchRun:
    """Plays episodes, not started yet, concurrently on one pool.

    Each has one turn under way, and so one place in the queue of the judge, which serves in the
    order of arrival: none can keep another waiting for more than its one turn.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = list(sessions)
        self._free: set[int] = set()
        """Samples that are waiting for their next turn."""
        self.batch = batch_of([each.episode.trajectory for each in sessions], time.monotonic())

    def play(
        self, console: Console, errors: Console | None = None, screen: bool = False
    ) -> tuple[Trajectory, ...]:
        """Plays them, with a line for each turn, or on the whole screen. Ctrl-C ends all of them.

        Failures are shown on `errors`, by default on `console`.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        now = lambda: picture(self.batch, console.width, console.height)  # noqa: E731
        try:
            with on_whole_screen(console, now) if screen else nullcontext():
                self.begin()
                while not self.batch.over:
                    for at, event in self.advance():
                        if not screen:
                            self._say(console, errors or console, at, event)
                    time.sleep(_PERIOD)
        except KeyboardInterrupt:
            show(errors or console, "interrupted; every finished turn is kept", "bold red")
        return self.finish()

    def summary(self, console: Console) -> None:
        """The results, a line per sample."""
        for at, sample in enumerate(self.batch.samples):
            reason = sample.episode.stop_reason or "interrupted"
            best = f"{counted(len(sample.turns), 'turn')}, {plain.best_of(sample.turns)}"
            show(console, f"sample {self.batch.number(at)}: {best}, {ended_text(reason)}")
        show(console, f"{best_of(self.batch)}; {progress_text(self.batch)}", "bold")

    def begin(self) -> None:
        """Starts all episodes."""
        for session in self._sessions:
            session.begin()

    def advance(self) -> Iterator[tuple[int, Event]]:
        """Yields new events, and starts the next turn of every idle sample.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        if not self.batch.over:
            self.batch = replace(self.batch, now=time.monotonic())
        for at, session in enumerate(self._sessions):
            for event in session.poll():
                self.batch = self.batch.after(event, at)
                if isinstance(event, Started | Judged) and not session.episode.done:
                    self._free.add(at)
                elif isinstance(event, Failed):
                    self.batch = self.batch.after(Ended(session.finish()), at)
                yield at, event
            if at in self._free:
                self._free.remove(at)
                session.ask()

    def finish(self) -> tuple[Trajectory, ...]:
        """Ends all episodes and returns their trajectories."""
        for at, session in enumerate(self._sessions):
            self.batch = self.batch.after(Ended(session.finish()), at)
        return tuple(sample.episode for sample in self.batch.samples)

    def _say(self, console: Console, errors: Console, at: int, event: Event) -> None:
        number = self.batch.number(at)
        if isinstance(event, Failed):
            show(errors, f"sample {number}: {event.message}", "bold red")
        elif isinstance(event, Judged):
            line = sample_line(number, self.batch.samples[at].turns[-1])
            line.append(f"  {best_of(self.batch)}; {progress_text(self.batch)}", DIM)
            console.print(line, soft_wrap=True)


def _columns(batch: Batch, width: int) -> tuple[Column, ...]:
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


def _cells(batch: Batch, at: int) -> dict[str, Text]:
    """A row of the table of samples; `best` is reached in `turn`."""
    live = batch.samples[at]
    turns, best, returns = live.turns, best_turn(live.turns), returns_of(live.episode)
    leads = batch.best is not None and batch.best[0] == at
    style = "red" if live.trouble else "cyan" if live.running else DIM
    value = speedup_text(best.speedup) if best else ""
    return {
        "sample": text(str(batch.number(at)), "bold" if leads else ""),
        "turns": marks("".join(map(mark_of, turns)), 16),
        "best": text(value, "bold green" if leads else ""),
        "turn": text(str(best.turn) if best else "", DIM),
        "return": text(f"{returns[0]:.2f}" if returns else "", DIM),
        "now": text(live.doing(batch.now or time.monotonic()), style),
        "speedups": text(sparkline([turn.speedup for turn in turns][-32:]), "cyan"),
    }
