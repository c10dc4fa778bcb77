"""Makes a policy for each episode of an evaluation, from its configuration."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kevin_env.app.arguments import read_policy
from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import (
    Agent,
    EvalConfig,
    OpenAI,
    Scripted,
    Solutions,
    Transformers,
)
from kevin_env.extract import fenced
from kevin_env.judge.api import JudgePool, device_names
from kevin_env.policies.base import Policy, ScriptedPolicy, for_sample
from kevin_env.policies.openai import public_url
from kevin_env.problem import Problem, data_folder
from kevin_env.record import Trajectory, Turn
from kevin_env.settings import Settings

Player = Callable[[Problem, int, int], Policy]
"""Makes the policy of an episode from its problem, sample (from 0) and number of turns so far."""


@dataclass(frozen=True, slots=True)
class WholePlayer:
    """Plays whole episodes, where there is no policy that is asked for each turn.

    Attributes:
        play: plays and records the episode of a problem and sample with a pool and settings. Calls
            back with each turn. Once the event is set, it interrupts the episode.
    """

    play: Callable[
        [Problem, int, JudgePool, Settings, Callable[[Turn], object], threading.Event], Trajectory
    ]


def make_player(config: EvalConfig, problems: Sequence[Problem]) -> Player:
    """The player of these problems.

    Raises:
        BadInput: if an API key, a reply or a solution is missing.
    """
    policy, settings = config.policy, config.settings
    if isinstance(policy, Scripted):
        shape = config.search.shape(config.samples, settings.max_turns)
        return _scripted(policy.replies, problems, range(shape.samples), shape.turns)
    if isinstance(policy, Solutions):
        return _solutions(problems, _languages(settings), settings.max_turns)
    shared = read_model(config)
    return lambda problem, sample, played: for_sample(shared, sample)


def read_model(config: EvalConfig) -> Policy:
    """The model that all episodes ask.

    Raises:
        BadInput: as `read_policy`, and for a person.
    """
    if policy_name(config) == "human":
        raise BadInput(
            "eval plays episodes in parallel; play one yourself with kevin-env play --human"
        )
    parameters = config.policy.model_dump(exclude={"kind", "model"}, exclude_none=True)
    return read_policy(policy_name(config), **parameters)


def recorded_url(config: EvalConfig) -> str | None:
    """The address of the policy's endpoint in records; None if it has none."""
    policy = config.policy
    return public_url(policy.base_url) if isinstance(policy, OpenAI) else None


def policy_name(config: EvalConfig) -> str:
    """The policy's name in records, which `read_policy` accepts."""
    policy = config.policy
    if isinstance(policy, Transformers):
        return f"local:{policy.model}"
    if isinstance(policy, Agent):
        return Path(policy.command[0]).name
    return policy.model if isinstance(policy, OpenAI) else policy.kind


def _scripted(folder: Path, problems: Sequence[Problem], samples: range, turns: int) -> Player:
    """Replies in a folder: the files must exist now, and are read when needed."""
    if not folder.is_dir():
        raise BadInput(f"policy.replies: no folder {folder}")

    def files(problem: Problem, sample: int) -> list[Path]:
        return [_reply_file(folder / problem.id, sample, turn) for turn in range(1, turns + 1)]

    for problem in problems:
        for sample in samples:
            files(problem, sample)
    return lambda problem, sample, played: ScriptedPolicy(
        map(_reply, files(problem, sample)[played:])
    )


def _reply_file(folder: Path, sample: int, turn: int) -> Path:
    places = (folder / str(sample), folder)
    for path in (place / f"{turn}{suffix}" for place in places for suffix in (".md", ".py")):
        if path.is_file():
            return path
    raise BadInput(f"policy.replies: no reply for turn {turn}, {folder / f'{turn}.md'} or .py")


def _reply(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return fenced(text) if path.suffix == ".py" else text


def _solutions(problems: Sequence[Problem], languages: Sequence[str], turns: int) -> Player:
    folder = data_folder("problems") / "solutions"
    found = {
        problem.id: [
            path
            for language in languages
            if (path := folder / f"{problem.id}.{language}.py").is_file()
        ]
        for problem in problems
    }
    missing = [id for id, files in found.items() if not files]
    if missing:
        named = ", ".join(missing[:5]) + f" and {len(missing) - 5} more" * (len(missing) > 5)
        kinds = " or ".join(languages)
        raise BadInput(f"no solution in {kinds} for {named}; remove them from problems")

    def play(problem: Problem, sample: int, played: int) -> Policy:
        files = found[problem.id]
        numbers = range(played, turns)
        return ScriptedPolicy(
            (_reply(files[min(turn, len(files) - 1)]) for turn in numbers), name="solutions"
        )

    return play


def _languages(settings: Settings) -> tuple[str, ...]:
    """The configured language, or those that the device runs at full speed."""
    if settings.language not in ("auto", "any"):
        return (settings.language,)
    return ("cpp",) if device_names(settings.device) == ("cpu",) else ("cuda", "triton")
