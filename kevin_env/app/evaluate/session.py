"""One evaluation on the command line: resolves its configuration, plays it and reports its end."""

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from kevin_env.app.arguments import require_endpoint
from kevin_env.app.errors import (
    ENDED_EARLY,
    INTERRUPTED,
    JUDGE_FAILED,
    WRONG_ARGUMENTS,
    BadInput,
    one_line,
)
from kevin_env.app.evaluate.board import Board, best_of, progress_text, shown
from kevin_env.app.evaluate.config import EvalConfig, OpenAI
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.folder import OnBadLine, Recorded, RunFolder
from kevin_env.app.evaluate.players import Player, WholePlayer, policy_name, read_model
from kevin_env.app.evaluate.run import Log, Run, Setup
from kevin_env.app.screen import counted, show
from kevin_env.judge.api import JudgePool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine
from kevin_env.selection import find_problems, name_of

_MAY_CHANGE = (
    "problem", "samples", "concurrency", "requests_per_minute", "prices", "baselines",
    "tensorboard", "wandb",
)  # fmt: skip
_MAY_CHANGE_OF_POLICY = ("base_url", "timeout", "retries")


@dataclass(frozen=True)
class Ended:
    """How an evaluation ended."""

    metrics: RunMetrics | None
    """None if nothing was played."""
    code: int
    """The exit code."""


def resolve(config: EvalConfig) -> tuple[EvalConfig, tuple[Problem, ...]]:
    """Fills in what depends on the environment: problems, the endpoint and the run folder.

    Raises:
        ProblemError: if a problem is unknown.
    """
    problems = tuple({problem.id: problem for problem in find_problems(config.problem)}.values())
    update: dict[str, Any] = {"problem": tuple(map(name_of, problems))}
    if isinstance(config.policy, OpenAI):
        base_url = config.policy.base_url or _environment_url()
        update["policy"] = config.policy.model_copy(update={"base_url": base_url})
    if config.out is None:
        slug = re.sub(r"[^\w.-]", "-", policy_name(config))[-60:].strip("-.") or "run"
        now = datetime.now().astimezone()
        update["out"] = Path("runs").absolute() / f"{now:%Y%m%d-%H%M%S}-{slug}"
    return config.model_copy(update=update), problems


def outline(config: EvalConfig, problems: Sequence[Problem]) -> dict[str, Any]:
    """The size of an evaluation, as `--dry-run` prints it."""
    shape = config.search.shape(config.samples, config.settings.max_turns)
    episodes = len(problems) * shape.samples
    turns = episodes * shape.turns
    rate = config.requests_per_minute
    return {
        "out": str(config.out),
        "model": policy_name(config),
        "search": config.search.kind,
        "problems": len(problems),
        "samples": shape.samples,
        "turns_of_a_sample": shape.turns,
        "episodes": episodes,
        "turns": turns,
        "compile_baselines": len(problems) if "compile" in config.baselines else 0,
        "least_seconds": 60 * (turns / rate) if rate else None,
    }


def evaluate(
    config: EvalConfig,
    problems: Sequence[Problem],
    open_judges: Callable[[], AbstractContextManager[JudgePool]],
    player: Player | WholePlayer,
    console: Console,
    open_log: Callable[[], AbstractContextManager[Log | None]] = nullcontext,
) -> Ended:
    """Plays what is missing of an evaluation and computes its figures.

    Args:
        config: resolved, with its `problems`. Its run folder must be locked.
        problems: see `config`.
        open_judges: opens the pool, once the endpoint has been reached.
        player: makes the policies, or plays.
        console: shows progress, on a terminal as a screen, elsewhere as a line per turn.
        open_log: opens a mirror of the run, once the folder is known to fit.

    Raises:
        BadInput: if the folder belongs to another evaluation, or cannot be written.
        PolicyError: if the endpoint cannot be reached or rejects the key, and is needed.
    """
    folder = RunFolder(config.out or Path())
    bad_line = functools.partial(_left_out, console)
    recorded = _recorded(folder, config, problems, bad_line)
    live = console.is_terminal and not console.is_dumb_terminal
    kept: list[Text] = []
    board = _board(config, problems, recorded, None if live else console, kept)
    if board.left and isinstance(config.policy, OpenAI):
        require_endpoint(read_model(config))
    if board.done:
        show(console, f"resuming {folder.path} after {board.done} of {board.planned} turns")
    try:
        with open_judges() as pool, open_log() as log:
            folder.write_config(config)
            run = Run(Setup(config, problems, folder, pool, player, board, log), recorded)
            interrupted = _interrupted(run, shown(board, console) if live else nullcontext())
            metrics = _conclude(folder.recorded(config.prices, bad_line), folder, log)
    except OSError as error:
        said = f"{one_line(error)}; continue with --resume {folder.path}"
        raise BadInput(said) from error
    for line in kept:
        console.print(line, soft_wrap=True)
    show(console, f"{progress_text(board)}; {best_of(board)}", "bold")
    for words, style in _last_words(run, folder, interrupted):
        show(console, words, style)
    return Ended(metrics, INTERRUPTED if interrupted else _code(run))


def _conclude(recorded: Recorded, folder: RunFolder, log: Log | None) -> RunMetrics | None:
    """Writes the figures, if there are any."""
    metrics = recorded.measured()
    if metrics:
        folder.write_metrics(metrics)
        if log:
            log.conclude(metrics)
    return metrics


def _interrupted(run: Run, screen: AbstractContextManager[None]) -> bool:
    """Plays, shown on a screen; returns whether Ctrl-C ended it."""
    try:
        with screen:
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
    console: Console | None,
    kept: list[Text],
) -> Board:
    """A board that prints its news; without a console those that should stay go to `kept`."""
    shape = config.search.shape(config.samples, config.settings.max_turns)
    place = str(config.out or "")
    sizes = (len(problems), "problem"), (shape.samples, "sample"), (shape.turns, "turn")
    size = " x ".join(counted(number, name) for number, name in sizes)
    place = min(place, os.path.relpath(place), key=len)
    search = "" if config.search.kind == "serial" else f", {config.search.kind}"
    title = f"{policy_name(config)}  {size}{search}  {place}"

    def say(line: Text, keep: bool) -> None:
        if console is not None:
            console.print(line, soft_wrap=True)
        elif keep:
            kept.append(line)

    return Board(title, [each.id for each in problems], shape, recorded, say)


def _last_words(run: Run, folder: RunFolder, interrupted: bool) -> Iterator[tuple[str, str]]:
    """Lines with their styles: what failed, how to continue, and where the figures are."""
    trouble = "bold red"
    for problem, why in run.failed.items():
        yield f"{problem} could not be played: {why}", trouble
    if run.gave_up:
        yield f"stopped: {run.gave_up}", trouble
    elif run.left:
        yield f"failures of the model or the judge: {len(run.left)}", trouble
    if interrupted or run.gave_up or run.left or run.failed:
        again = f"kevin-env eval --resume {folder.path}"
        yield f"all judged turns are saved; to continue: {again}", trouble
    if folder.metrics_file.exists():
        files = f"{folder.metrics_file} and {folder.summary_file.name}"
        yield f"figures: {files}", ""
        yield (
            f"to browse: kevin-env replay {folder.path}; as a page: kevin-env report {folder.path}",
            "",
        )


def _code(run: Run) -> int:
    if run.failed:
        return WRONG_ARGUMENTS
    if "judge_error" in run.left:
        return JUDGE_FAILED
    return ENDED_EARLY if run.left or run.gave_up else 0


def _recorded(
    folder: RunFolder, config: EvalConfig, problems: Sequence[Problem], on_bad_line: OnBadLine
) -> list[Trajectory]:
    """The recorded episodes.

    Raises:
        BadInput: if the folder belongs to another evaluation.
    """
    recorded = folder.trajectories(on_bad_line)
    if folder.config_file.exists():
        _require_same(folder, resolve(folder.config())[0], config)
    elif recorded:
        raise BadInput(f"{folder.path} has trajectories but no config.toml; use another --out")
    versions = {problem.id: problem.sha256 for problem in problems}
    for each in recorded:
        if versions.get(each.problem.id, each.problem.sha256) != each.problem.sha256:
            changed = f"{each.problem.id} has changed since {folder.path} was begun"
            raise BadInput(f"{changed}; use another --out")
    return recorded


def _require_same(folder: RunFolder, old: EvalConfig, new: EvalConfig) -> None:
    """Raises BadInput if the recorded episodes do not belong to the new configuration."""
    before, now = _flat(_lasting(old)), _flat(_lasting(new))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            _refuse(folder, key, before.get(key), now.get(key))
    if new.samples < old.samples:
        _refuse(folder, "samples", old.samples, new.samples)
    dropped = set(old.problem) - set(new.problem)
    if dropped:
        _refuse(folder, "problem", f"{sorted(dropped)[0]} among others", "without it")


def _refuse(folder: RunFolder, key: str, old: Any, new: Any) -> None:
    raise BadInput(f"{folder.path} was begun with {key} = {old}, not {new}; use another --out")


def _lasting(config: EvalConfig) -> dict[str, Any]:
    """What must not change when a run is resumed."""
    values = config.model_dump(mode="json", exclude={"out", *_MAY_CHANGE}, exclude_none=True)
    policy = values["policy"].items()
    return values | {"policy": {k: v for k, v in policy if k not in _MAY_CHANGE_OF_POLICY}}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, Mapping)
        found |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return found


def _environment_url() -> str | None:
    """$OPENAI_BASE_URL, unless it holds a password, which must not be written to a file."""
    url = os.environ.get("OPENAI_BASE_URL")
    return url if url and "@" not in url else None
