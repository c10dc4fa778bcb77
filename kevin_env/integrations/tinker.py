"""Training with Tinker's cookbook (`pip install 'kevin-env[tinker]'`), each turn with its own
discounted return.

    from tinker_cookbook.rl import train
    config = train.Config(
        dataset_builder=KernelDatasetBuilder(model_name=MODEL, renderer_name="qwen3"),
        rollout_error_tolerance=PerTurnReturns(), remove_constant_reward_groups=True, ...
    )

Left alone, the cookbook adds up the rewards of a trajectory and gives all of its turns one
advantage. `PerTurnReturns` makes a trajectory of every turn, before groups with equal rewards are
left out: a group is then Kevin's m x n turns. The cookbook subtracts the group's mean and does not
divide: the baseline `flat` of `kevin_env.advantage`.
"""

# pyright: reportMissingImports=false
# Its pins exclude those of the tools that check types.

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import chz
from tinker_cookbook.completers import TokenCompleter
from tinker_cookbook.renderers import get_renderer
from tinker_cookbook.rl.rollout_strategy import FailFast, RolloutResult, RolloutStrategy
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, RLDatasetBuilder, Trajectory
from tinker_cookbook.tokenizer_utils import get_tokenizer

from kevin_env.curriculum import dealt
from kevin_env.integrations.tinker_env import KernelEnv, KernelGroup
from kevin_env.problem import Problem
from kevin_env.recorder import Recorder
from kevin_env.score import discounted_returns
from kevin_env.selection import ProblemSource, find_problems, problem_source
from kevin_env.settings import Settings

__all__ = [
    "KernelDataset",
    "KernelDatasetBuilder",
    "KernelEnv",
    "KernelGroup",
    "PerTurnReturns",
    "divide",
]


class KernelDataset(RLDataset):
    """Batches of problems: all of them in turn, shuffled anew each time round, or what a source
    draws.

    Args:
        problems: what is trained on.
        group: makes the group of a problem.
        groups_per_batch: how many problems a batch has.
        batches: how many batches there are.
        seed: of the order.
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
        return dealt(self._problems, str(self._seed), place)


@chz.chz
class KernelDatasetBuilder(RLDatasetBuilder):
    """What `train.Config` takes. The numbers are Kevin's (arXiv 2507.11948): 8 problems of 16
    episodes of 4 turns.

    Raises (from the call):
        ProblemError: if a problem is unknown.
    """

    model_name: str
    """Whose tokenizer is used."""
    renderer_name: str
    problems: Any = "train"
    """As for `find_problems`, of a level only those that are not held out; or a `MixedDifficulty`,
    or a `Curriculum`: that is told how episodes went if these run in this process.
    """
    test_problems: Any = "held_out"
    """As for `find_problems`; None is no test."""
    groups_per_batch: int = 8
    group_size: int = 16
    batches: int = 40
    seed: int = 0
    settings: Settings = chz.field(default_factory=Settings)
    recorder: Recorder | None = None
    pool: Any = None

    async def __call__(self) -> tuple[KernelDataset, KernelDataset | None]:
        """The problems to train on, and those to test on, each once."""
        renderer = get_renderer(
            self.renderer_name, get_tokenizer(self.model_name), model_name=self.model_name
        )
        group = partial(
            KernelGroup, group_size=self.group_size, renderer=renderer, settings=self.settings,
            model=self.model_name, pool=self.pool,
        )  # fmt: skip
        source = problem_source(self.problems)
        told = partial(
            group,
            recorder=self.recorder,
            source=source if isinstance(source, ProblemSource) else None,
        )
        train = KernelDataset(source, told, self.groups_per_batch, self.batches, self.seed)
        if self.test_problems is None:
            return train, None
        held_out = find_problems(self.test_problems)
        return train, KernelDataset(held_out, partial(group, group_size=1), 1, len(held_out))


@dataclass(frozen=True)
class PerTurnReturns(RolloutStrategy):
    """Gives every turn as a trajectory of its own whose reward is the discounted return from that
    turn on.
    """

    inner: RolloutStrategy = field(default_factory=FailFast)
    """Plays the episodes: `RetryOnFailure()` and `MinViableGroup()` bear with judges that fail."""

    @property
    def catches_group_errors(self) -> bool:
        """As the strategy inside."""
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
