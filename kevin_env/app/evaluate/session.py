"""Plays an evaluation in front of a person, and says how it ended."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kevin_env.app.errors import ENDED_EARLY, INTERRUPTED, JUDGE_FAILED, WRONG_ARGUMENTS, BadInput
from kevin_env.app.evaluate.board import Board
from kevin_env.app.evaluate.board_screen import best_text, progress_text, render
from kevin_env.app.evaluate.config import EvalConfig, Human
from kevin_env.app.evaluate.evaluation import begin, conclude
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.metrics import RunMetrics
from kevin_env.app.evaluate.players import Player, policy_name
from kevin_env.app.evaluate.run import Run
from kevin_env.app.evaluate.seat import Setup
from kevin_env.app.evaluate.watch import Log
from kevin_env.app.replay.state import Size
from kevin_env.app.screen import show
from kevin_env.judge.api import JudgePool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine

_FRAMES_A_SECOND = 4


@dataclass(frozen=True)
class Ended:
    """How an evaluation ended."""

    metrics: RunMetrics | None
    """None if nothing was played."""
    code: int
    """The exit code."""


def evaluate(
    config: EvalConfig,
    problems: Sequence[Problem],
    folder: RunFolder,
    pool: JudgePool,
    player: Player,
    console: Console,
    open_log: Callable[[], AbstractContextManager[Log | None]] = nullcontext,
) -> Ended:
    """Plays what is missing of an evaluation and works out its figures.

    Args:
        config: resolved.
        problems: those that it names.
        folder: where it is kept; locked.
        pool: who judges.
        player: who plays.
        console: where progress is shown: on a terminal as a screen, else as a line for each turn.
        open_log: called when the folder is known to be fit; what it gives is told when episodes
            have ended, and the figures.

    Raises:
        BadInput: if the folder is that of another evaluation, or cannot be written.
    """
    bad_line = functools.partial(_left_out, console)
    recorded = begin(folder, config, problems, bad_line)
    live = (
        console.is_terminal
        and not console.is_dumb_terminal
        and not isinstance(config.policy, Human)
    )
    board = _board(config, problems, recorded, console, live)
    if board.done:
        show(console, f"{folder.path} goes on after {board.done} of {board.planned} turns")
    try:
        with open_log() as log:
            run = Run(Setup(config, problems, folder, pool, player, board, log), recorded)
            with _watched(board, console if live else None):
                interrupted = _interrupted(run)
            metrics = conclude(folder, config, bad_line)
            if log and metrics:
                log.conclude(metrics)
    except OSError as error:
        raise BadInput(
            f"cannot write to {folder.path}: {error}; --resume {folder.path} goes on"
        ) from error
    show(console, f"{progress_text(board)}; {best_text(board)}", "bold")
    for words, style in _last_words(run, folder, interrupted):
        show(console, words, style)
    return Ended(metrics, INTERRUPTED if interrupted else _code(run))


def _interrupted(run: Run) -> bool:
    """Plays; whether it was interrupted."""
    try:
        run.play()
    except KeyboardInterrupt:
        return True
    return False


def _left_out(console: Console, line: BadLine) -> None:
    show(console, f"left out: {line}", "yellow")


def _board(
    config: EvalConfig,
    problems: Sequence[Problem],
    recorded: Sequence[Trajectory],
    console: Console,
    live: bool,
) -> Board:
    """A board that prints its news, or on a screen only what should stay."""
    shape = config.search.shape(config.samples, config.settings.max_turns)
    place = str(config.out or "")
    many = f"{len(problems)} problems x {shape.samples} samples x {shape.turns} turns, {config.search.kind}"
    title = f"{policy_name(config)}  {many}  {min(place, os.path.relpath(place), key=len)}"

    def say(line: Text, keep: bool) -> None:
        if keep or not live:
            console.print(line, soft_wrap=True)

    return Board(title, [each.id for each in problems], shape, recorded, say)


@contextlib.contextmanager
def _watched(board: Board, console: Console | None) -> Iterator[None]:
    """A screen that follows the board, where there is a console for it."""
    if console is None:
        yield
        return

    def screen() -> Text:
        return Text("\n").join(render(board, Size(console.width, console.height)))

    with Live(
        get_renderable=screen, console=console, refresh_per_second=_FRAMES_A_SECOND, transient=True
    ):
        yield


def _last_words(run: Run, folder: RunFolder, interrupted: bool) -> Iterator[tuple[str, str]]:
    """What was left undone, what to do about it, and where the figures are; each with its style."""
    trouble = "bold red"
    for problem, why in run.failed.items():
        yield f"{problem} could not be played: {why}", trouble
    if run.gave_up:
        yield f"stopped: {run.gave_up}", trouble
    elif run.left:
        yield f"{len(run.left)} times the model or the judge failed", trouble
    if interrupted or run.gave_up or run.left or run.failed:
        yield f"every judged turn is kept; kevin-env eval --resume {folder.path} goes on", trouble
    if folder.metrics_file.exists():
        yield (
            f"figures are in {folder.metrics_file} and {folder.summary_file.name}; kevin-env replay {folder.path}",
            "",
        )


def _code(run: Run) -> int:
    if run.failed:
        return WRONG_ARGUMENTS
    if "judge_error" in run.left:
        return JUDGE_FAILED
    return ENDED_EARLY if run.left or run.gave_up else 0
