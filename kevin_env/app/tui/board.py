"""`kevin-env eval` on a terminal: progress of all problems."""

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from kevin_env.app.evaluate.board import Board, Lane, Waiting, best_text, progress_text
from kevin_env.app.evaluate.run import Run
from kevin_env.app.replay.pieces import DIM, Column, progress, sparkline, text, that_fit
from kevin_env.app.tui.app import KevinApp
from kevin_env.app.tui.overview import OverviewScreen
from kevin_env.render import speedup_text

_PERIOD = 0.25
"""Seconds between updates of the screen."""


class BoardScreen(OverviewScreen):
    """Progress, problems, and the latest turns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "busy", "busy only", tooltip="only problems being played, or all"),
    ]
    app: "BoardApp"  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._busy = False

    def on_mount(self) -> None:
        self.set_interval(_PERIOD, self.draw)

    def draw(self) -> None:
        board, width = self.app.board, self.size.width
        with board.lock:
            every = list(board.lanes.values())
            lanes = [lane for lane in every if lane.waiting] if self._busy else every
            rows = [lane_cells(board, lane) for lane in lanes]
            facts = (
                progress(board.done / max(board.planned, 1), progress_text(board), width),
                text(f" {samples_text(every)}"),
                text(f" {best_text(board)}", "green"),
            )
            title, news = text(f" {board.title}", "bold"), [*reversed(board.news)]
        columns = lane_columns(board, width - 3)
        self.show(title, facts, columns, len(rows), rows.__getitem__, news)

    def action_leave(self) -> None:
        self.app.action_leave()

    def action_busy(self) -> None:
        self._busy = not self._busy
        self.draw()


class BoardApp(KevinApp[None]):
    """Plays an evaluation, not started yet, in a thread, and shows its progress."""

    TITLE = "kevin-env eval"

    def __init__(self, board: Board, run: Run) -> None:
        super().__init__()
        self.board = board
        self._evaluation = run
        self._interrupted = False
        self._thread = threading.Thread(target=self._play, daemon=True)

    def get_default_screen(self) -> BoardScreen:
        return BoardScreen()

    def on_mount(self) -> None:
        self._thread.start()
        self.set_interval(_PERIOD, lambda: None if self._thread.is_alive() else self.exit())

    def action_help_quit(self) -> None:
        """Ctrl-C stops the run."""
        self.action_leave()

    async def action_quit(self) -> None:
        """Every way out stops the run first."""
        self.action_leave()

    def action_leave(self) -> None:
        """Stops after the running turns; at once at the second press."""
        self._evaluation.interrupt()
        self.say("stopping: waiting for running turns; q again discards them")

    def play(self) -> bool:
        """Plays to the end; returns whether it was interrupted.

        Raises:
            OSError: if the folder cannot be written.
        """
        self.run()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._interrupted

    def _play(self) -> None:
        try:
            self._evaluation.play()
        except KeyboardInterrupt:
            self._interrupted = True
        except Exception as error:  # the boundary of a thread: `play` raises it
            self._error = error


def samples_text(lanes: Sequence[Lane]) -> str:
    """Numbers of ended samples, and of samples that wait for the model or the judge."""
    over, of = (sum(len(lane.over) for lane in lanes), sum(len(lane.turns) for lane in lanes))
    waiting = _waiting([each for lane in lanes for each in lane.waiting.values()])
    return f"{over} of {of} samples ended" + (f"; waiting for: {waiting}" if waiting else "")


def _waiting(targets: Sequence[Waiting]) -> str:
    counts = (f"{targets.count(each)} {each}" for each in ("model", "judge") if each in targets)
    return ", ".join(counts)


def lane_columns(board: Board, width: int) -> tuple[Column, ...]:
    """The columns that fit."""
    longest = max(map(len, board.lanes), default=0)
    found = (
        Column("problem", min(max(longest, 7), max(width - 46, 16))),
        Column("ended", 7, "right"),
        Column("best", 7, "right"),
        Column("found in", 18),
        Column("turns", min(max(board.shape.samples, 5), 32)),
        Column("waiting for", 16),
    )
    return that_fit(found, width)


def lane_cells(board: Board, lane: Lane) -> Mapping[str, Text]:
    """A row of the table of problems."""
    best, waiting = lane.best, list(lane.waiting.values())
    known = "correct" if lane.correct else ""
    turns = sparkline([each or None for each in lane.turns[:32]], board.shape.turns)
    return {
        "problem": text(lane.id, "red" if lane.failed else "bold" if waiting else ""),
        "ended": text(f"{len(lane.over)}/{len(lane.turns)}", DIM),
        "best": text(speedup_text(best.speedup) if best else known, "green"),
        "found in": text(f"sample {best.sample}, turn {best.turn}" if best else "", DIM),
        "turns": text(turns, "cyan"),
        "waiting for": text(_waiting(waiting), DIM),
    }
