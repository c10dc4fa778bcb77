"""The screen of an evaluation."""

import io

import pytest
from hostile_texts import EVIL, TEXTS, harmful
from rich.console import Console
from trajectories import RIGHT

from kevin_env.app.evaluate.board import Board, picture, shown
from kevin_env.app.evaluate.search import Shape

CLEARS = TEXTS["clears the screen"]


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


@pytest.mark.parametrize("size", [(80, 24), (20, 4), (160, 40)])
def test_a_screen_has_the_progress_of_an_evaluation(size: tuple[int, int]) -> None:
    screen = picture(busy_board(), *size).plain
    assert not harmful(screen)
    assert len(screen.splitlines()) <= size[1]
    if size[0] >= 80:
        for piece in (
            "40 of 476 turns",
            "0:40 elapsed, 60.0 a minute, about 7:16 left",
            "20 of 30 problems solved, best 2",
            "1 of 120 samples ended; waiting: 20 for the judge",
            "correct/timed",
        ):
            assert piece in screen, piece


def test_the_problems_being_played_come_first() -> None:
    board = busy_board()
    last = list(board.lanes)[-1]
    board.waits(last, 0, "model")
    assert last.removesuffix("漢")[:20] in picture(board, 80, 40).plain


def test_the_screen_is_there_while_the_run_is() -> None:
    page = io.StringIO()
    console = Console(file=page, force_terminal=True, width=80, height=24, legacy_windows=False)
    with shown(busy_board(), console):
        pass
    assert "40 of 476 turns" in page.getvalue()
    assert page.getvalue().index("\x1b[?1049h") < page.getvalue().index("\x1b[?1049l")
