"""The episodes that are going to be played: new ones, or recorded ones that are taken up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.episode import Episode, EpisodeError
from kevin_env.judge.api import JudgePool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, Recorder, read_trajectories
from kevin_env.settings import Settings


def last_episodes(path: Path) -> tuple[Trajectory, ...]:
    """The episodes of a trajectory file that can be resumed.

    That is the last episode, or all samples of the last group that have turns left.

    Raises:
        BadInput: if there is none.
    """
    try:
        found = [each for each in read_trajectories(path) if not isinstance(each, BadLine)]
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    if not found:
        raise BadInput(f"{path} holds no trajectory that can be read")
    if found[-1].sample is None:
        return (found[-1],)
    group = [each for each in found if _sister(each, found[-1])]
    latest = {each.sample: each for each in sorted(group, key=lambda each: each.created)}
    unfinished = [each for each in latest.values() if each.stop_reason not in _WHOLE]
    if not unfinished:
        raise BadInput(f"cannot resume: all {len(latest)} samples in {path} have all their turns")
    return tuple(sorted(unfinished, key=lambda each: each.sample or 0))


def _sister(one: Trajectory, other: Trajectory) -> bool:
    """Whether two are samples of the same problem, played alike."""
    same = one.problem.sha256 == other.problem.sha256 and one.model == other.model
    return one.sample is not None and same and one.config == other.config


_WHOLE = ("max_turns", "stop_on")


def recorded_settings(path: Path, start: Trajectory, asked: Mapping[str, Any]) -> Settings:
    """The settings of an episode that is taken up: its own.

    Args:
        path: its file.
        start: as it was recorded.
        asked: settings that were given now, by name and as records hold them; `auto` asks for
            nothing.

    Raises:
        BadInput: if one of them is another than the record's, or this version does not know the
            record's.
    """
    try:
        settings = Settings.of(start.config)
    except ValueError as error:
        raise BadInput(f"cannot resume: {error}") from error
    recorded = settings.model_dump(mode="json")
    for name, value in asked.items():
        if value not in ("auto", recorded[name]):
            begun = f"{path} was begun with {name}={recorded[name]}, not {value}"
            raise BadInput(f"cannot resume: {begun}; leave that out, or play anew with --problem")
    return settings


def open_episode(
    start: Problem | Trajectory,
    pool: JudgePool,
    settings: Settings,
    recorder: Recorder,
    model: str,
    sample: int | None = None,
) -> Episode:
    """A new episode for a problem, or a resumed one, which keeps its own settings and sample.

    Raises:
        BadInput: if the record cannot be resumed.
    """
    if isinstance(start, Problem):
        return Episode(start, pool, settings, recorder=recorder, model=model, sample=sample)
    try:
        episode = Episode.resume(start, pool, recorder=recorder)
    except (EpisodeError, ValueError) as error:
        raise BadInput(f"cannot resume: {error}") from error
    episode.model = model
    return episode
