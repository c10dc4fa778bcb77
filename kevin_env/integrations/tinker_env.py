"""An episode as an environment of Tinker's cookbook, and the group of those that are compared with
each other.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# Its pins exclude those of the tools that check types, which take `tinker` for the module beside
# this one.

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

import tinker
from tinker_cookbook.completers import StopCondition
from tinker_cookbook.renderers import Message, Renderer
from tinker_cookbook.rl.types import (
    STOP_METRIC_PREFIX,
    Action,
    ActionExtra,
    Env,
    EnvGroupBuilder,
    Metrics,
    StepResult,
    StopReason,
    Trajectory,
)

from kevin_env.context import build_messages
from kevin_env.episode import Episode
from kevin_env.integrations.judging import process_pool, submit_async
from kevin_env.integrations.tokens import alone, token_counter
from kevin_env.judge.api import JudgePool
from kevin_env.outcome import Category
from kevin_env.policies.thinking import make_reply
from kevin_env.problem import Problem
from kevin_env.record import Reply, Turn, Usage
from kevin_env.recorder import Recorder
from kevin_env.selection import ProblemSource
from kevin_env.settings import Settings


class KernelEnv(Env):
    """One episode. A reply that was cut off, or that cannot be read, is a turn like any other and
    ends nothing.

    Args:
        episode: not started yet.
        renderer: between messages and tokens.
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
        message, _ = await asyncio.to_thread(alone, self._renderer.parse_response, action)
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
        prompt = await asyncio.to_thread(alone, self._renderer.build_generation_prompt, chat)
        return prompt, await asyncio.to_thread(alone, self._renderer.get_stop_sequences)

    def _stop(self) -> Metrics:
        why = (
            StopReason.MAX_TURNS
            if self.episode.stop_reason == "max_turns"
            else StopReason.COMPLETED
        )
        return {f"{STOP_METRIC_PREFIX}{why}": 1.0}


@dataclass(frozen=True)
class KernelGroup(EnvGroupBuilder):
    """The episodes of one problem that are compared with each other. Can be pickled if it has no
    pool and no source.
    """

    problem: Problem
    group_size: int
    renderer: Renderer
    settings: Settings = field(default_factory=Settings)
    model: str = "tinker"
    """What the record calls the policy."""
    recorder: Recorder | None = None
    pool: JudgePool | None = None
    """By default judges of this machine's devices."""
    source: ProblemSource | None = None
    """Is told how each episode went."""

    async def make_envs(self) -> Sequence[KernelEnv]:
        """New episodes."""
        count = token_counter(partial(self.renderer.tokenizer.encode, add_special_tokens=False))
        build = partial(build_messages, count=count)
        episode = partial(
            Episode, self.problem, self.pool or process_pool(), self.settings,
            recorder=self.recorder, model=self.model, build=build,
        )  # fmt: skip
        return [KernelEnv(episode(), self.renderer) for _ in range(self.group_size)]

    async def compute_group_rewards(
        self, trajectory_group: list[Trajectory], env_group: Sequence[Env]
    ) -> list[tuple[float, Metrics]]:
        """No rewards beside those of the turns."""
        if self.source is not None:
            for env in dict.fromkeys(env_group):  # each stands once for every turn
                assert isinstance(env, KernelEnv)
                self.source.record(self.problem, [turn.outcome for turn in env.episode.turns])
        return [(0.0, {}) for _ in trajectory_group]

    def logging_tags(self) -> list[str]:
        """Metrics are also given by level."""
        return [f"level{self.problem.level}"] if self.problem.level is not None else []


def _reply(message: Message, cut: bool, usage: Usage) -> Reply:
    content = message["content"]
    if isinstance(content, str):
        return make_reply(content, truncated=cut, usage=usage)
    text = "".join(part["text"] for part in content if part["type"] == "text")
    thinking = "".join(part["thinking"] for part in content if part["type"] == "thinking")
    return make_reply(text, thinking, truncated=cut, usage=usage)


def _metrics(turn: Turn) -> Metrics:
    rates = {f"category/{name}": float(name == turn.category) for name in get_args(Category)}
    return {**rates, "score": turn.score} | (
        {} if turn.speedup is None else {"speedup": turn.speedup}
    )
