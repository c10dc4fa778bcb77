"""Opens the episodes to play: new ones, or recorded ones that are resumed."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kevin_env.app.arguments import is_remote
from kevin_env.app.errors import BadInput
from kevin_env.episode import Episode, EpisodeError
from kevin_env.judge.api import JudgePool
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.policies.openai import OPENAI_URL, OpenAIPolicy, public_url
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, Recorder, read_trajectories
from kevin_env.settings import Settings


def last_episodes(path: Path, on_bad_line: Callable[[BadLine], None]) -> tuple[Trajectory, ...]:
    """The episodes of a trajectory file that can be resumed.

    That is the last episode, or all samples of the last group that have turns left.

    Args:
        path: the trajectory file.
        on_bad_line: called with each unreadable line, whose turns are played again.

    Raises:
        BadInput: if there is none.
    """
    lines = list(read_trajectories(path))
    found = [each for each in lines if isinstance(each, Trajectory)]
    bad = [each for each in lines if isinstance(each, BadLine)]
    if not found:
        why = f" ({bad[0]})" if bad else ""
        raise BadInput(f"{path} has no readable trajectory{why}")
    for each in bad:
        on_bad_line(each)
    if found[-1].sample is None:
        return (found[-1],)
    group = [each for each in found if _sister(each, found[-1])]
    latest = {each.sample: each for each in sorted(group, key=lambda each: each.created)}
    unfinished = [each for each in latest.values() if each.stop_reason not in _WHOLE]
    if not unfinished:
        raise BadInput(f"cannot resume: all {len(latest)} samples in {path} are complete")
    return tuple(sorted(unfinished, key=lambda each: each.sample or 0))


def _sister(one: Trajectory, other: Trajectory) -> bool:
    """Whether both are samples of the same problem with the same settings."""
    same = one.problem.sha256 == other.problem.sha256 and one.model == other.model
    alike = one.config == other.config and one.base_url == other.base_url
    return one.sample is not None and same and alike


_WHOLE = ("max_turns", "stop_on")


def recorded_settings(path: Path, start: Trajectory, requested: Mapping[str, Any]) -> Settings:
    """The recorded settings of an episode that is resumed.

    `requested` holds settings from the command line by name, in the form of a record; `auto`
    matches any value.

    Raises:
        BadInput: if a requested value differs from the recorded one, or the record has a setting
            that this version does not know.
    """
    try:
        settings = Settings.recorded(start.config)
    except ValueError as error:
        raise BadInput(f"cannot resume: {error}") from error
    recorded = settings.model_dump(mode="json")
    for name, value in requested.items():
        if value not in ("auto", recorded[name]):
            begun = f"{path} was begun with {name}={recorded[name]}, not {value}"
            raise BadInput(f"cannot resume: {begun}; leave it out, or start over with --problem")
    return settings


def recorded_base_url(path: Path, start: Trajectory, model: str) -> str | None:
    """The endpoint of an episode that is resumed, as `read_policy` takes it.

    Raises:
        BadInput: if the model needs an endpoint, and none was recorded.
    """
    if not is_remote(model):
        return None
    if start.base_url is None:
        missing = f"{path} does not record the endpoint of {model}"
        raise BadInput(f"cannot resume: {missing}; give --base-url, such as {OPENAI_URL}")
    with contextlib.suppress(PolicyError):
        if public_url() == start.base_url:
            return None  # the environment's address may have a password
    return start.base_url


def open_episode(
    start: Problem | Trajectory,
    pool: JudgePool,
    settings: Settings,
    recorder: Recorder,
    policy: Policy,
    sample: int | None = None,
) -> Episode:
    """A new episode for a problem, or a resumed one, which keeps its own settings and sample.

    Raises:
        BadInput: if the record cannot be resumed.
    """
    if isinstance(start, Problem):
        episode = Episode(start, pool, settings, recorder=recorder, sample=sample)
    else:
        try:
            episode = Episode.resume(start, pool, recorder=recorder)
        except (EpisodeError, ValueError) as error:
            raise BadInput(f"cannot resume: {error}") from error
    episode.model = policy.name
    episode.base_url = policy.base_url if isinstance(policy, OpenAIPolicy) else None
    return episode
