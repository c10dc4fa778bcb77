"""Plays many samples side by side, and shows how far they are."""

import time
from collections.abc import Iterator, Sequence

from rich.console import Console

from kevin_env.app.play import plain
from kevin_env.app.play.batch import batch_of, reduce
from kevin_env.app.play.batch_screen import best_text, progress_text, render, turn_line
from kevin_env.app.play.events import Ended, Event, Failed, Judged, Resized, Started, Ticked
from kevin_env.app.play.session import Session
from kevin_env.app.replay.terminal import Terminal
from kevin_env.app.screen import show
from kevin_env.record import Trajectory

_PERIOD = 0.05
"""Seconds between two looks at what has happened."""
_TICK = 0.2
"""Seconds between two screens on which only a clock has gone on."""


class BatchRun:
    """Episodes that are played at the same time over one pool.

    Each has one turn under way, and so one place in the queue of the judge, which serves in the
    order of arrival: none can keep another waiting for more than its one turn.

    Args:
        sessions: the episodes; not begun.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = list(sessions)
        self._batch = batch_of(
            tuple(each.episode.trajectory for each in sessions), time.monotonic()
        )

    def tell(self, console: Console) -> tuple[Trajectory, ...]:
        """Plays them, with a line for each turn. Ctrl-C ends all of them.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        try:
            self._begin()
            while not self._batch.over:
                for at, event in self._advance():
                    self._say(console, at, event)
                time.sleep(_PERIOD)
        except KeyboardInterrupt:
            show(console, "interrupted; every finished turn is kept", "bold red")
        return self._finish()

    def run(self, console: Console) -> tuple[Trajectory, ...]:
        """Plays them on a screen, until the person leaves. Errors as `tell`."""
        self._begin()
        with Terminal(console) as terminal:
            drawn = None
            while not self._batch.done:
                for _ in self._advance():
                    pass
                if terminal.size != self._batch.size:
                    terminal.forget()
                    self._batch = reduce(self._batch, Resized(terminal.size))
                if self._batch is not drawn:
                    terminal.draw(render(self._batch, self._batch.size))
                    drawn = self._batch
                for key in terminal.keys(_PERIOD):
                    self._batch = reduce(self._batch, key)
        return self._finish()

    def summary(self, console: Console) -> None:
        """What came out, a line for each sample."""
        for sample in self._batch.samples:
            turns, reason = sample.episode.turns, sample.episode.stop_reason or "interrupted"
            show(
                console,
                f"sample {sample.number}: {len(turns)} turns, {plain.best_text(turns)}, ended: {reason}",
            )
        show(console, f"{best_text(self._batch)}; {progress_text(self._batch)}", "bold")

    def _begin(self) -> None:
        for session in self._sessions:
            session.begin()

    def _advance(self) -> Iterator[tuple[int, Event]]:
        """Takes note of what has happened, and has every sample that is free take its next turn."""
        now = time.monotonic()
        if not self._batch.over and now - self._batch.now > _TICK:
            self._batch = reduce(self._batch, Ticked(now))
        for at, session in enumerate(self._sessions):
            for event in session.poll():
                self._batch = reduce(self._batch, event, at)
                yield at, event
                if isinstance(event, Started | Judged) and not session.episode.done:
                    session.ask()
                elif isinstance(event, Failed):
                    self._batch = reduce(self._batch, Ended(session.finish()), at)

    def _say(self, console: Console, at: int, event: Event) -> None:
        sample = self._batch.samples[at]
        if isinstance(event, Failed):
            show(console, f"sample {sample.number}: {event.message}", "bold red")
        elif isinstance(event, Judged):
            line = turn_line(sample.number, sample.episode.turns[-1])
            line.append(f"  {best_text(self._batch)}; {progress_text(self._batch)}", "bright_black")
            console.print(line, soft_wrap=True)

    def _finish(self) -> tuple[Trajectory, ...]:
        for at, session in enumerate(self._sessions):
            self._batch = reduce(self._batch, Ended(session.finish()), at)
        return tuple(sample.episode for sample in self._batch.samples)
