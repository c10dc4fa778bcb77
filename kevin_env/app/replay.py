"""Prints the episodes of a trajectory file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from kevin_env.app.errors import BadInput
from kevin_env.app.screen import show, show_code, speedup_text, turns_table, verdict_text
from kevin_env.record import Trajectory, Turn
from kevin_env.recorder import BadLine, read_trajectories
from kevin_env.score import discounted_returns
from kevin_env.settings import Settings


def read_file(path: Path, errors: Console) -> list[Trajectory]:
    """The episodes of a file. Each line that cannot be read is named on `errors`, and the rest is given.

    Raises:
        BadInput: if there is nothing that can be read.
    """
    trajectories: list[Trajectory] = []
    bad: list[BadLine] = []
    try:
        for each in read_trajectories(path):
            bad.append(each) if isinstance(each, BadLine) else trajectories.append(each)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    for line in bad:
        show(errors, f"{line}; it is left out", "red")
    if not trajectories:
        raise BadInput(f"{path} holds no trajectory that can be read")
    return trajectories


def replay(trajectories: Sequence[Trajectory], console: Console, turn: int | None = None) -> None:
    """Prints every episode, or one turn of each.

    Raises:
        BadInput: if no episode has that turn.
    """
    for number, trajectory in enumerate(_chosen(trajectories, turn)):
        if number:
            console.print()
        _print_episode(console, trajectory)


def replay_json(trajectories: Sequence[Trajectory], turn: int | None = None) -> list[dict[str, Any]]:
    """As `replay`, as values for JSON."""
    return [each.model_dump(mode="json") for each in _chosen(trajectories, turn)]


def _chosen(trajectories: Sequence[Trajectory], turn: int | None) -> list[Trajectory]:
    if turn is None:
        return list(trajectories)
    found: list[Trajectory] = []
    for each in trajectories:
        turns = tuple(t for t in each.turns if t.turn == turn)
        returns = tuple(r for t, r in zip(each.turns, each.returns, strict=False) if t.turn == turn)
        if turns:
            found.append(each.model_copy(update={"turns": turns, "returns": returns}))
    if not found:
        longest = max(len(each.turns) for each in trajectories)
        raise BadInput(f"there is no turn {turn}; the longest episode has {longest}")
    return found


def _print_episode(console: Console, trajectory: Trajectory) -> None:
    hardware = trajectory.hardware
    show(console, f"episode {trajectory.episode_id}", "bold")
    facts = {
        "problem": trajectory.problem.id,
        "model": trajectory.model or "not recorded",
        "device": f"{hardware.name} ({hardware.device})" if hardware else "not recorded",
        "created": trajectory.created,
        "ended": trajectory.stop_reason or "not yet",
    }
    for name, value in facts.items():
        show(console, f"  {name:<8} {value}")
    for turn in trajectory.turns:
        _print_turn(console, turn)
    console.print()
    console.print(turns_table(trajectory.turns, trajectory.returns or _returns(trajectory)))


def _returns(trajectory: Trajectory) -> tuple[float, ...]:
    """The returns so far of an episode that still runs or was cut off."""
    known = {name: trajectory.config[name] for name in ("gamma", "returns") if name in trajectory.config}
    settings = Settings.of(known)
    return discounted_returns([turn.score for turn in trajectory.turns], settings.gamma, settings.returns)


def _print_turn(console: Console, turn: Turn) -> None:
    console.print()
    line = verdict_text(turn.outcome)
    line.append(f"  {speedup_text(turn.speedup, turn.speedup_interval)}".rstrip())
    line.append(f"  score {turn.score:.2f}  ({turn.seconds.total:.1f} s)")
    show(console, f"turn {turn.turn}", "bold")
    if turn.submission:
        show_code(console, turn.submission.code)
    else:
        show(console, turn.reply)
    console.print(line, soft_wrap=True)
    show(console, turn.feedback.rstrip("\n"))
