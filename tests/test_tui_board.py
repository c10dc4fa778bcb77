"""The screen of an evaluation."""

import functools
import threading
from typing import Any

import pytest
from hostile_texts import EVIL, TEXTS, harmful
from piloting import one_size, screens
from trajectories import RIGHT

from kevin_env.app.evaluate.board import Board
from kevin_env.app.evaluate.search import Shape
from kevin_env.app.evaluate.workers import Workers
from kevin_env.app.tui.board import BoardApp

CLEARS = TEXTS["clears the screen"]


class Running:
    """A run that goes on until it is interrupted twice, or ends."""

    def __init__(self, error: BaseException | None = None, ends: bool = False) -> None:
        self.interrupts, self._error = 0, error
        self._go = threading.Event()
        if ends:
            self._go.set()

    def interrupt(self) -> None:
        self.interrupts += 1
        if self.interrupts == 2:
            self._go.set()

    def play(self) -> None:
        self._go.wait(20)
        if self._error is not None:
            raise self._error


def busy_board() -> Board:
    now = [0.0]
    names = [f"L1_{number}_A_rather_long_name_of_a_problem_{CLEARS}漢" for number in range(30)]
    title = "m  30 problems x 4 samples x 4 turns, serial  run"
    board = Board(title, names, Shape(4, 4), clock=lambda: now[0])
    for at in range(40):
        now[0] += 1.0
        board.waits(names[at % 20], at % 4, "model")
        board.turn(names[at % 20], at % 4, RIGHT.model_copy(update={"turn": at // 20 + 1}))
        board.waits(names[at % 20], at % 4, "judge")
    board.ended(names[0], 1, 1, "model_error", EVIL)
    return board


@one_size((80, 24), (20, 4), (160, 40))
def test_an_evaluation_is_watched_and_stopped(size: tuple[int, int]) -> None:
    run: Any = Running(KeyboardInterrupt())
    app = BoardApp(busy_board(), run)
    first, asked, *_ = screens(app, "j j b ?", "q q", "ctrl+c", size=size)
    for shown in (first, asked):
        assert not harmful(shown)
    assert run.interrupts == 2
    if size[0] >= 80:
        assert "discards them" in asked
        for piece in (
            "40 of 476 turns",
            "0:40 elapsed, 60.0 a minute, about 7:16 left",
            "20 of 30 problems solved, best 2",
            "1 of 120 samples ended; waiting for: 20 judge",
            "correct/timed",
        ):
            assert piece in asked, piece


def test_the_screen_ends_with_the_run() -> None:
    run: Any = Running(ends=True)
    app = BoardApp(busy_board(), run)
    assert screens(app, "") is not None
    failing: Any = Running(OSError("full"), ends=True)
    app = BoardApp(busy_board(), failing)
    app.run = lambda: app._thread.start()  # type: ignore[method-assign, assignment]
    with pytest.raises(OSError, match="full"):
        app.play()


def hold(event: threading.Event) -> None:
    event.wait(20)


def test_workers_are_interrupted_from_another_thread() -> None:
    workers, held = Workers(2), threading.Event()
    workers.put(functools.partial(hold, held), 0)
    waiting = threading.Event()
    ended: list[BaseException] = []

    def wait() -> None:
        waiting.set()
        try:
            workers.wait(lambda: None)
        except KeyboardInterrupt as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    workers.interrupt()
    assert workers.stopping.is_set() and not workers.abandoned.is_set()
    workers.interrupt()
    thread.join(10)
    held.set()
    assert len(ended) == 1
