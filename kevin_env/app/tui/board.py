"""`kevin-env eval` on a terminal: the problems while they are played."""

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.evaluate.board import Board, Lane, best_text, progress_text
from kevin_env.app.evaluate.run import Run
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    join,
    progress,
    sparkline,
    speedup,
    text,
    that_fit,
)
from kevin_env.app.tui.app import AskScreen, KevinApp
from kevin_env.app.tui.widgets import Lines, Rows

_PERIOD = 0.25
"""Seconds between two drawings."""


class BoardScreen(AskScreen):
    """Progress, problems, and the latest turns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.leave", "stop"),
        Binding("j,down", "move(1)", "down"),
        Binding("k,up", "move(-1)", "up"),
        Binding("pagedown", "move(10)", "ten down", show=False),
        Binding("pageup", "move(-10)", "ten up", show=False),
        Binding("b", "busy", "busy ones only"),
    ]
    DEFAULT_CSS = """
    BoardScreen Rows { height: auto; max-height: 65%; }
    BoardScreen Lines { height: 1fr; border-top: solid $panel; }
    """
    app: "BoardApp"  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._busy = False

    def compose(self) -> ComposeResult:
        """Title, progress, problems and news."""
        yield Static(classes="title", id="title")
        for name in ("progress", "samples", "best"):
            yield Static(classes="bar", id=name)
        yield Rows()
        yield Lines()
        yield from self.foot()

    def on_mount(self) -> None:
        """Draws it now and then."""
        self.draw()
        self.set_interval(_PERIOD, self.draw)

    def on_resize(self) -> None:
        """Draws it for another width."""
        self.draw()

    def draw(self) -> None:
        """Draws what is known now."""
        board, width = self.app.board, self.size.width
        with board.lock:
            share, words = board.done / max(board.planned, 1), progress_text(board)
            all_lanes = list(board.lanes.values())
            samples, best, news = samples_text(all_lanes), best_text(board), [*reversed(board.news)]
            lanes = [lane for lane in all_lanes if lane.waiting] if self._busy else all_lanes
            columns = lane_columns(board, width - 3)
            shown = [lane_cells(board, lane) for lane in lanes]
        self.query_one("#title", Static).update(text(f" {board.title}", "bold"))
        self.query_one("#progress", Static).update(progress(share, words, width))
        self.query_one("#samples", Static).update(text(f" {samples}"))
        self.query_one("#best", Static).update(text(f" {best}", "green"))
        rows = self.query_one(Rows)
        rows.styles.height = len(shown) + 1
        rows.show(columns, len(shown), lambda at: shown[at])
        self.query_one(Lines).show(lambda _: [join(" ", line) for line in news], keep=True)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """A click chooses."""
        self.query_one(Rows).move_to(event.row)

    def action_move(self, by: int) -> None:
        """Chooses another problem."""
        rows = self.query_one(Rows)
        rows.move_to(rows.cursor + by)

    def action_busy(self) -> None:
        """Shows only the problems that are being played, or all."""
        self._busy = not self._busy
        self.draw()


class BoardApp(KevinApp[None]):
    """Plays an evaluation in another thread, and shows how far it is.

    Args:
        board: told by the run.
        run: not begun.
    """

    TITLE = "kevin-env eval"

    def __init__(self, board: Board, run: Run) -> None:
        super().__init__()
        self.board = board
        self._evaluation = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._play, daemon=True)

    def get_default_screen(self) -> BoardScreen:
        """The board."""
        return BoardScreen()

    def on_mount(self) -> None:
        """Begins."""
        self._thread.start()
        self.set_interval(_PERIOD, lambda: None if self._thread.is_alive() else self.exit())

    def action_help_quit(self) -> None:
        """Ctrl-C stops the run."""
        self.action_leave()

    async def action_quit(self) -> None:
        """Every way out stops the run first."""
        self.action_leave()

    def action_leave(self) -> None:
        """Stops after the running turns, or at the second time at once."""
        self._evaluation.interrupt()
        self.say("stopping: waiting for running turns; q again discards them")

    def play(self) -> bool:
        """Plays to the end; whether it was interrupted.

        Raises:
            OSError: if the folder cannot be written.
        """
        self.run()
        self._thread.join()
        if isinstance(self._error, KeyboardInterrupt):
            return True
        if self._error is not None:
            raise self._error
        return False

    def _play(self) -> None:
        try:
            self._evaluation.play()
        except BaseException as error:  # the boundary of a thread: `play` raises it
            self._error = error


def samples_text(lanes: Sequence[Lane]) -> str:
    """How many samples have ended, and what the others wait for."""
    over = sum(len(lane.over) for lane in lanes)
    waiting = [whom for lane in lanes for whom in lane.waiting.values()]
    now = f"{waiting.count('model')} wait for the model, {waiting.count('judge')} for the judge"
    return f"{over} of {sum(len(lane.turns) for lane in lanes)} samples ended, {now}"


def lane_columns(board: Board, width: int) -> tuple[Column, ...]:
    """The columns there is room for."""
    longest = max(map(len, board.lanes), default=0)
    samples = min(max(board.shape.samples, 7), 32)
    found = (
        Column("problem", min(max(longest, 7), max(width - 40, 16))),
        Column("ended", 7, "right"),
        Column("best", 7, "right"),
        Column("sample", 6, "right"),
        Column("turn", 4, "right"),
        Column("samples", samples),
        Column("model", 5, "right"),
        Column("judge", 5, "right"),
    )
    return that_fit(found, width)


def lane_cells(board: Board, lane: Lane) -> Mapping[str, Text]:
    """A row of the table of problems."""
    best, waiting = lane.best, list(lane.waiting.values())
    style = "red" if lane.failed else "bold" if waiting else ""
    known = "correct" if lane.correct else ""
    return {
        "problem": text(lane.id, style),
        "ended": text(f"{len(lane.over)}/{len(lane.turns)}", DIM),
        "best": text(speedup(best.speedup) if best else known, "green"),
        "sample": text(str(best.sample) if best else "", DIM),
        "turn": text(str(best.turn) if best else "", DIM),
        "samples": text(
            sparkline([each or None for each in lane.turns[:32]], board.shape.turns), "cyan"
        ),
        "model": text(str(waiting.count("model") or ""), DIM),
        "judge": text(str(waiting.count("judge") or ""), DIM),
    }
