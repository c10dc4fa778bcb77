"""Plays an evaluation in front of a person, and says how it ended."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kevin_env.app.errors import ENDED_EARLY, INTERRUPTED, JUDGE_FAILED, WRONG_ARGUMENTS, BadInput
from kevin_env.app.evaluate.board import Board
from kevin_env.app.evaluate.board_screen import best_text, progress_text, render
from kevin_env.app.evaluate.config import EvalConfig, Human, OpenAI
from kevin_env.app.evaluate.folder import RunFolder, read_episodes
from kevin_env.app.evaluate.metrics import Prices, RunMetrics, measure
from kevin_env.app.evaluate.players import Player, policy_name
from kevin_env.app.evaluate.run import Log, Run, Setup
from kevin_env.app.evaluate.tables import summary_rows
from kevin_env.app.replay.state import Size
from kevin_env.app.screen import show
from kevin_env.judge.api import JudgePool
from kevin_env.kernelbench import PREFIX
from kevin_env.problem import Problem, problem_paths
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine
from kevin_env.selection import find_problems

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


_MAY_CHANGE = (
    "problems",
    "samples",
    "concurrency",
    "requests_per_minute",
    "prices",
    "baselines",
    "tensorboard",
)
_MAY_CHANGE_OF_POLICY = ("base_url", "timeout")

OnBadLine = Callable[[BadLine], None]


@dataclass(frozen=True)
class Recorded:
    """What there is of a run."""

    episodes: Sequence[Trajectory]
    """Without the texts of their turns."""
    ratios: Mapping[str, float]
    """T_compile / T_eager by problem id."""
    prices: Prices | None

    def measured(self) -> RunMetrics | None:
        """Figures of it; None while there is no turn."""
        if not any(each.turns for each in self.episodes):
            return None
        return measure(self.episodes, ratios=self.ratios, prices=self.prices)


def resolve(config: EvalConfig) -> tuple[EvalConfig, tuple[Problem, ...]]:
    """The configuration with nothing left to the environment: each problem by name, the endpoint,
    the run folder.

    Raises:
        ProblemError: if a problem is unknown.
        BadInput: if the endpoint of the environment is not fit to be written down.
    """
    problems = tuple({problem.id: problem for problem in find_problems(config.problems)}.values())
    update: dict[str, Any] = {"problems": tuple(map(_name, problems))}
    if isinstance(config.policy, OpenAI):
        known = {"base_url": config.policy.base_url or _environment_url()}
        update["policy"] = config.policy.model_copy(update=known)
    if config.out is None:
        now = datetime.now().astimezone()
        update["out"] = (
            Path("runs").absolute() / f"{now:%Y%m%d-%H%M%S}-{_slug(policy_name(config))}"
        )
    return config.model_copy(update=update), problems


def begin(
    folder: RunFolder, config: EvalConfig, problems: Sequence[Problem], on_bad_line: OnBadLine
) -> list[Trajectory]:
    """Keeps the configuration in its folder, which must be locked, and gives the episodes that
    there are.

    Raises:
        BadInput: if they are of another evaluation than this.
    """
    recorded = folder.trajectories(on_bad_line)
    if folder.config_file.exists():
        _require_same(folder, resolve(folder.config())[0], config)
    elif recorded:
        raise BadInput(f"{folder.path} holds trajectories and no config.toml; give another --out")
    versions = {problem.id: problem.sha256 for problem in problems}
    for each in recorded:
        if versions.get(each.problem.id, each.problem.sha256) != each.problem.sha256:
            raise BadInput(
                f"{each.problem.id} has changed since {folder.path} was begun; give another --out"
            )
    folder.write_config(config)
    return recorded


def conclude(folder: RunFolder, config: EvalConfig, on_bad_line: OnBadLine) -> RunMetrics | None:
    """Figures of what there is, written to the folder; None while there is nothing.

    Raises:
        OSError: if they cannot be written.
    """
    metrics = _of(folder, config.prices, on_bad_line).measured()
    if metrics is not None:
        folder.write_metrics(metrics, summary_rows(metrics))
    return metrics


def figures_of(path: Path, prices: Prices | None, on_bad_line: OnBadLine) -> RunMetrics:
    """Figures of a run folder, of a trajectory file, or of all in a folder.

    Raises:
        BadInput: if there is nothing to be measured.
    """
    metrics = read_recorded(path, prices, on_bad_line).measured()
    if metrics is None:
        raise BadInput(f"{path} holds no trajectory with a turn")
    return metrics


def read_recorded(path: Path, prices: Prices | None, on_bad_line: OnBadLine) -> Recorded:
    """What there is in a run folder, in a trajectory file, or in all of a folder.

    Args:
        path: the file or folder.
        prices: what tokens cost; what the configuration of the run says when left out.
        on_bad_line: is told of each line that cannot be read.

    Raises:
        BadInput: if it cannot be read.
    """
    folder = RunFolder(path)
    if folder.config_file.exists():
        return _of(folder, prices or folder.config().prices, on_bad_line)
    return Recorded(_loose_episodes(path, on_bad_line), {}, prices)


def outline(config: EvalConfig, problems: Sequence[Problem]) -> dict[str, Any]:
    """How much there is to do: what `--dry-run` tells."""
    shape = config.search.shape(config.samples, config.settings.max_turns)
    turns = len(problems) * shape.samples * shape.turns
    minutes = turns / config.requests_per_minute if config.requests_per_minute else None
    return {
        "out": str(config.out),
        "model": policy_name(config),
        "search": config.search.kind,
        "problems": len(problems),
        "samples": shape.samples,
        "turns_of_a_sample": shape.turns,
        "episodes": len(problems) * shape.samples,
        "turns": turns,
        "compile_baselines": len(problems) if "compile" in config.baselines else 0,
        "least_seconds": None if minutes is None else 60 * minutes,
    }


def _of(folder: RunFolder, prices: Prices | None, on_bad_line: OnBadLine) -> Recorded:
    ratios = {
        problem: each.ratio for problem, each in folder.compared().items() if each.ratio is not None
    }
    return Recorded(folder.trajectories(on_bad_line), ratios, prices)


def _loose_episodes(path: Path, on_bad_line: OnBadLine) -> list[Trajectory]:
    """Episodes that no evaluation numbered: the same number twice means two samples, not one taken
    up again.
    """
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    try:
        found = [each for file in files for each in _read(file, on_bad_line)]
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    return [each.model_copy(update={"sample": None}) for each in found]


def _read(file: Path, on_bad_line: OnBadLine) -> list[Trajectory]:
    return [] if file.name.endswith(".partial.jsonl") else read_episodes(file, on_bad_line)


def _require_same(folder: RunFolder, old: EvalConfig, new: EvalConfig) -> None:
    """Raises BadInput if what was played so far is no part of the new evaluation."""
    before, now = _flat(_lasting(old)), _flat(_lasting(new))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            _refuse(folder, key, before.get(key), now.get(key))
    if new.samples < old.samples:
        _refuse(folder, "samples", old.samples, new.samples)
    dropped = set(old.problems) - set(new.problems)
    if dropped:
        _refuse(folder, "problems", f"{sorted(dropped)[0]} among others", "all but that")


def _refuse(folder: RunFolder, key: str, old: Any, new: Any) -> None:
    raise BadInput(f"{folder.path} was begun with {key} = {old}, not {new}; give another --out")


def _lasting(config: EvalConfig) -> dict[str, Any]:
    """What must stay as it is when a run is taken up."""
    values = config.model_dump(mode="json", exclude={"out", *_MAY_CHANGE}, exclude_none=True)
    return values | {
        "policy": {k: v for k, v in values["policy"].items() if k not in _MAY_CHANGE_OF_POLICY}
    }


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= (
            _flat(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {f"{prefix}{key}": value}
        )
    return found


def _name(problem: Problem) -> str:
    """What finds the problem again: its id if it is one of ours, else its file."""
    own = problem_paths().get(problem.id)
    known = problem.id.startswith(PREFIX) or (
        own is not None and str(own.resolve()) == problem.path
    )
    return problem.id if known else problem.path


def _environment_url() -> str | None:
    """$OPENAI_BASE_URL, unless it holds a password, which is nothing to be written down."""
    url = os.environ.get("OPENAI_BASE_URL")
    return url if url and "@" not in url else None


def _slug(name: str) -> str:
    return (
        "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in name)[
            -60:
        ].strip("-.")
        or "run"
    )
