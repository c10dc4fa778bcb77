"""Who plays an evaluation: a policy for each episode, from the configuration."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kevin_env.app.arguments import read_policy
from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import (
    EvalConfig,
    Human,
    OpenAI,
    Scripted,
    Solutions,
    Transformers,
)
from kevin_env.judge.choice import gpu_present
from kevin_env.policies.base import Policy, for_sample
from kevin_env.policies.scripted import ScriptedPolicy
from kevin_env.problem import Problem, data_folder
from kevin_env.settings import Settings

Player = Callable[[Problem, int, int], Policy]
"""The policy for an episode, of its problem, its sample (from 0) and how many turns it has already.
"""

_MOST_NAMED = 5


def make_player(config: EvalConfig, problems: Sequence[Problem]) -> Player:
    """What plays the episodes of these problems.

    Raises:
        BadInput: if there is no key where one is needed, or there are no replies for a problem.
    """
    policy, settings = config.policy, config.settings
    if isinstance(policy, Scripted):
        shape = config.search.shape(config.samples, settings.max_turns)
        return _scripted(policy.replies, problems, range(shape.samples), shape.turns)
    if isinstance(policy, Solutions):
        return _solutions(problems, _languages(settings), settings.max_turns)
    shared = _shared(config)
    return lambda problem, sample, played: for_sample(shared, sample)


def policy_name(config: EvalConfig) -> str:
    """What the record calls the policy, and what `read_policy` takes."""
    policy = config.policy
    if isinstance(policy, Transformers):
        return f"local:{policy.model}"
    return policy.model if isinstance(policy, OpenAI) else policy.kind


def _shared(config: EvalConfig) -> Policy:
    """One policy that all episodes ask."""
    policy = config.policy
    if isinstance(policy, Human):
        return read_policy("human")
    parameters: dict[str, Any] = policy.model_dump(exclude={"kind", "model"}, exclude_none=True)
    return read_policy(policy_name(config), **parameters)


def _scripted(folder: Path, problems: Sequence[Problem], samples: range, turns: int) -> Player:
    """Replies of a folder, looked for now and read when they are needed."""
    if not folder.is_dir():
        raise BadInput(f"policy.replies: there is no folder {folder}")

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
    raise BadInput(
        f"policy.replies: there is no reply for turn {turn}, {folder / f'{turn}.md'} or .py"
    )


def _reply(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return f"```python\n{text}\n```\n" if path.suffix == ".py" else text


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
        named = ", ".join(missing[:_MOST_NAMED]) + (
            f" and {len(missing) - _MOST_NAMED} more" * (len(missing) > 5)
        )
        raise BadInput(
            f"there is no solution in {' or '.join(languages)} of {named}; leave them out of problems"
        )

    def play(problem: Problem, sample: int, played: int) -> Policy:
        files = found[problem.id]
        numbers = range(played, turns)
        return ScriptedPolicy(
            (_reply(files[min(turn, len(files) - 1)]) for turn in numbers), name="solutions"
        )

    return play


def _languages(settings: Settings) -> tuple[str, ...]:
    """What solutions may be written in: what was asked for, or what the device runs at full speed."""
    if settings.language != "auto":
        return (settings.language,)
    gpu = gpu_present() if settings.device == "auto" else settings.device != "cpu"
    return ("cuda", "triton") if gpu else ("cpp",)
