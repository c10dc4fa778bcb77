"""Training with Tinker's cookbook (`pip install 'kevin-env[tinker]'`), with one return per turn.

    from tinker_cookbook.rl import train
    config = train.Config(
        dataset_builder=KernelDatasetBuilder(model_name=MODEL, renderer_name="qwen3"),
        rollout_error_tolerance=PerTurnReturns(), remove_constant_reward_groups=True, ...
    )

By default, the cookbook sums the rewards of a trajectory and gives all of its turns one advantage.
`PerTurnReturns` turns every turn into a trajectory before groups with equal rewards are removed, so
that a group is Kevin's m x n turns. The cookbook subtracts the group's mean and does not divide:
the baseline `flat` of `kevin_env.advantage`. So the default score is `log_speed`: with raw
speedups, of 0.9x in one group and 300x in another, the second would decide every step.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_args

import chz
import tinker
from tinker_cookbook.completers import StopCondition, TokenCompleter
from tinker_cookbook.renderers import Message, Renderer, get_renderer
from tinker_cookbook.rl.rollout_strategy import FailFast, RolloutResult, RolloutStrategy
from tinker_cookbook.rl.types import (
    STOP_METRIC_PREFIX,
    Action,
    ActionExtra,
    Env,
    EnvGroupBuilder,
    Metrics,
    RLDataset,
    RLDatasetBuilder,
    StepResult,
    StopReason,
    Trajectory,
)
from tinker_cookbook.tokenizer_utils import get_tokenizer

from kevin_env.context import build_messages
from kevin_env.curriculum import problem_at
from kevin_env.episode import Episode
from kevin_env.integrations.judging import one_at_a_time, process_pool, submit_async, token_counter
from kevin_env.judge.api import JudgePool
from kevin_env.outcome import Category
from kevin_env.problem import Problem
from kevin_env.record import Reply, Turn, Usage
from kevin_env.recorder import Recorder
from kevin_env.score import discounted_returns
from kevin_env.selection import ProblemSource, find_problems, problem_source
from kevin_env.settings import Settings

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# Its pins conflict with those of the type checkers, which take `tinker` for this module.


class KernelEnv(Env):
    """One episode. A reply that was cut off or cannot be parsed is a turn like any other.

    Args:
        episode: an episode that was not started.
        renderer: converts between messages and tokens.
    """

    def __init__(self, episode: Episode, renderer: Renderer) -> None:
        self.episode, self._renderer = episode, renderer

    async def initial_observation(self) -> tuple[tinker.ModelInput, StopCondition]:
        """The first prompt.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails.
        """
        await asyncio.to_thread(self.episode.start)
        return await self._prompt()

    async def step(self, action: Action, *, extra: ActionExtra | None = None) -> StepResult:
        """Takes a turn; its reward is the turn's score.

        Raises:
            JudgeError: if the judge fails twice. `PerTurnReturns(RetryOnFailure())` then plays
                another episode.
        """
        message, _ = await asyncio.to_thread(one_at_a_time, self._renderer.parse_response, action)
        reply = _reply(
            message,
            (extra or {}).get("stop_reason") == "length",
            Usage(completion_tokens=len(action)),
        )
        turn = await submit_async(self.episode, reply)
        done = self.episode.done
        prompt, stop = (tinker.ModelInput.empty(), []) if done else await self._prompt()
        return StepResult(
            reward=turn.score,
            episode_done=done,
            next_observation=prompt,
            next_stop_condition=stop,
            metrics=_metrics(turn) | (self._stop() if done else {}),
            logs={"outcome": f"{turn.category}/{turn.kind}", "message": turn.outcome.message},
        )

    async def _prompt(self) -> tuple[tinker.ModelInput, StopCondition]:
        chat = [
            Message(role=message.role, content=message.content) for message in self.episode.messages
        ]
        prompt = await asyncio.to_thread(
            one_at_a_time, self._renderer.build_generation_prompt, chat
        )
        return prompt, await asyncio.to_thread(one_at_a_time, self._renderer.get_stop_sequences)

    def _stop(self) -> Metrics:
        why = (
            StopReason.MAX_TURNS
            if self.episode.stop_reason == "max_turns"
            else StopReason.COMPLETED
        )
        return {f"{STOP_METRIC_PREFIX}{why}": 1.0}


@dataclass(frozen=True)
class KernelGroup(EnvGroupBuilder):
    """The episodes of one problem to compare. Can be pickled without a pool and a source."""

    problem: Problem
    group_size: int
    renderer: Renderer
    settings: Settings = field(default_factory=Settings)
    model: str = "tinker"
    """Name of the policy for the record."""
    recorder: Recorder | None = None
    pool: JudgePool | str | None = None
    """By default judges of this machine's devices."""
    source: ProblemSource | None = None
    """Gets the outcome of each episode."""

    async def make_envs(self) -> Sequence[KernelEnv]:
        """New episodes."""
        count = token_counter(partial(self.renderer.tokenizer.encode, add_special_tokens=False))
        build = partial(build_messages, count=count)
        episode = partial(
            Episode, self.problem, process_pool(self.pool), self.settings,
            recorder=self.recorder, model=self.model, build=build,
        )  # fmt: skip
        return [KernelEnv(episode(), self.renderer) for _ in range(self.group_size)]

    async def compute_group_rewards(
        self, trajectory_group: list[Trajectory], env_group: Sequence[Env]
    ) -> list[tuple[float, Metrics]]:
        """No rewards other than those of the turns."""
        if self.source is not None:
            for env in dict.fromkeys(env_group):  # each appears once per turn
                assert isinstance(env, KernelEnv)
                self.source.record(self.problem, [turn.outcome for turn in env.episode.turns])
        return [(0.0, {}) for _ in trajectory_group]

    def logging_tags(self) -> list[str]:
        """Metrics are also given by level."""
        return [f"level{self.problem.level}"] if self.problem.level is not None else []


def _reply(message: Message, cut: bool, usage: Usage) -> Reply:
    content = message["content"]
    if isinstance(content, str):
        return Reply(content=content, truncated=cut, usage=usage)
    text = "".join(part["text"] for part in content if part["type"] == "text")
    thinking = "".join(part["thinking"] for part in content if part["type"] == "thinking")
    return Reply(content=text, reasoning=thinking or None, truncated=cut, usage=usage)


def _metrics(turn: Turn) -> Metrics:
    rates = {f"category/{name}": float(name == turn.category) for name in get_args(Category)}
    return {**rates, "score": turn.score} | (
        {} if turn.speedup is None else {"speedup": turn.speedup}
    )


class KernelDataset(RLDataset):
    """Batches of problems, shuffled in each epoch, or drawn from a source.

    Args:
        problems: the training problems.
        group: makes the group of a problem.
        groups_per_batch: problems per batch.
        batches: number of batches.
        seed: seed of the order.
    """

    def __init__(
        self,
        problems: Sequence[Problem] | ProblemSource,
        group: Callable[[Problem], KernelGroup],
        groups_per_batch: int,
        batches: int,
        seed: int = 0,
    ) -> None:
        self._problems, self._group, self._seed = problems, group, seed
        self._size, self._batches = groups_per_batch, batches

    def get_batch(self, index: int) -> Sequence[KernelGroup]:
        """The batch of that number; a curriculum draws a new one whatever the number."""
        if isinstance(self._problems, ProblemSource):
            return [self._group(problem) for problem in self._problems.sample(self._size)]
        first = index * self._size
        return [self._group(self._at(place)) for place in range(first, first + self._size)]

    def __len__(self) -> int:
        return self._batches

    def _at(self, place: int) -> Problem:
        assert not isinstance(self._problems, ProblemSource)
        return problem_at(self._problems, str(self._seed), place)


@chz.chz
class KernelDatasetBuilder(RLDatasetBuilder):
    """The dataset builder for `train.Config`, with Kevin's sizes (arXiv 2507.11948) as defaults.

    Raises (from the call):
        ProblemError: if a problem is unknown.
    """

    model_name: str
    """Whose tokenizer is used."""
    renderer_name: str
    problems: Any = "train"
    """As for `find_problems`, without the held-out problems of levels; or a `MixedDifficulty` or
    `Curriculum`, which gets the outcomes if episodes run in this process.
    """
    test_problems: Any = "held_out"
    """As for `find_problems`; None is no test."""
    groups_per_batch: int = 8
    group_size: int = 16
    batches: int = 40
    seed: int = 0
    settings: Settings = chz.field(default_factory=lambda: Settings(score="log_speed"))
    """By default with a logarithmic score: see the module."""
    recorder: Recorder | None = None
    pool: Any = None

    async def __call__(self) -> tuple[KernelDataset, KernelDataset | None]:
        """The training problems, and the test problems, each once."""
        renderer = get_renderer(
            self.renderer_name, get_tokenizer(self.model_name), model_name=self.model_name
        )
        group = partial(
            KernelGroup, group_size=self.group_size, renderer=renderer, settings=self.settings,
            model=self.model_name, pool=self.pool,
        )  # fmt: skip
        source = problem_source(self.problems)
        train_group = partial(
            group,
            recorder=self.recorder,
            source=source if isinstance(source, ProblemSource) else None,
        )
        train = KernelDataset(source, train_group, self.groups_per_batch, self.batches, self.seed)
        if self.test_problems is None:
            return train, None
        held_out = find_problems(self.test_problems)
        return train, KernelDataset(held_out, partial(group, group_size=1), 1, len(held_out))


@dataclass(frozen=True)
class PerTurnReturns(RolloutStrategy):
    """Turns every turn into a trajectory whose reward is its discounted return."""

    inner: RolloutStrategy = field(default_factory=FailFast)
    """Plays the episodes: `RetryOnFailure()` and `MinViableGroup()` tolerate failing judges."""

    @property
    def catches_group_errors(self) -> bool:
        """As the inner strategy."""
        return self.inner.catches_group_errors

    async def execute(
        self, env_group_builder: EnvGroupBuilder, policy: TokenCompleter
    ) -> RolloutResult:
        """Plays the episodes of a `KernelGroup` and divides them into turns."""
        assert isinstance(env_group_builder, KernelGroup)
        played = await self.inner.execute(env_group_builder, policy)
        turns = [
            (turn, env)
            for trajectory, env in zip(played.trajectories, played.envs, strict=True)
            for turn in divide(trajectory, env_group_builder.settings)
        ]
        return RolloutResult([turn for turn, _ in turns], [env for _, env in turns], played.errors)


def divide(trajectory: Trajectory, settings: Settings) -> list[Trajectory]:
    """The turns of a trajectory, each alone, with their discounted returns as rewards."""
    scores = [transition.reward for transition in trajectory.transitions]
    returns = discounted_returns(scores, settings.gamma, settings.returns)
    return [
        replace(trajectory, transitions=[replace(transition, reward=value)])
        for transition, value in zip(trajectory.transitions, returns, strict=True)
    ]
