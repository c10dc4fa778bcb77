"""An `Episode` as an OpenEnv environment."""

import asyncio
import json
import math
import random
from collections.abc import Awaitable, Callable, Coroutine
from importlib import metadata, resources
from typing import Any, TypeVar

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolObservation
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation
from openenv.core.utils import run_async_safely

from kevin_env.context import build_messages
from kevin_env.episode import Episode, EpisodeError
from kevin_env.integrations.openenv.models import KernelAction, KernelObservation, KernelState
from kevin_env.integrations.openenv.server.sessions import LEFT, ServerLimits
from kevin_env.integrations.openenv.server.tasks import ResetRequest, Tasks
from kevin_env.judge.api import DeviceInfo, JudgePool
from kevin_env.outcome import CompileError, Incorrect, Outcome, speedup_of
from kevin_env.problem import shown_source
from kevin_env.record import Turn, best_speedup
from kevin_env.score import Score, WeightedSum, discounted_returns, resolve_score
from kevin_env.session import AgentSession
from kevin_env.settings import Settings
from kevin_env.tools import described, use

NAME = "kernel_env"
DESCRIPTION = (
    "Rewrite a PyTorch module as a GPU kernel over several turns, "
    "judged outside the kernel's own process."
)
MOST = 10.3
"""Upper end of an unbounded reward: with the default score, ten times as fast."""
_SOLVED = 1.05
"""As in kernrl, a problem is solved with a speedup above this."""
_SHOWN = {"name", "description", "parameters", "output_schema"}
T = TypeVar("T")


class _Tool(Tool):
    """A tool for FastMCP, whose errors are one line."""

    use: Callable[[str, dict[str, Any]], Awaitable[tuple[str, dict[str, Any]]]]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        try:
            return ToolResult(*await self.use(self.name, arguments))
        except Exception as error:
            raise ToolError(str(error)) from error  # other errors get a prefix


class KernelEnvironment(MCPEnvironment):
    """One client's session: an `AgentSession` at a time, played by `step` and by tools.

    Nothing starts before the first `reset`, or the tool `get_problem`.

    Args:
        pool: the judges; the caller closes them.
        tasks: the problems to offer.
        settings: how episodes are played.
        limits: the server's limits; the times are published.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, pool: JudgePool, tasks: Tasks, settings: Settings, limits: ServerLimits
    ) -> None:
        tools = FastMCP(NAME, dereference_schemas=False)
        listing = Tool.from_function(self.list_tasks, name="list_problems")
        tools.add_tool(_Tool(**listing.model_dump(include=_SHOWN), use=self._list))
        for name, (about, given, answer) in described().items():
            schemas: dict[str, Any] = {"parameters": given, "output_schema": answer}
            tools.add_tool(_Tool(name=name, description=about, **schemas, use=self._use))
        super().__init__(tools)
        self._pool, self._tasks, self._settings, self._limits = pool, tasks, settings, limits
        self._range = reward_range(settings.score)
        self._published: dict[str, Any] = {
            "max_turns": settings.max_turns,
            "reward_range": self._range,
            "step_timeout_s": limits.step_timeout,
            "idle_timeout_s": limits.idle_timeout,
            "message_bytes": limits.message_bytes,
        }
        self._random = random.Random()
        self._session = self._open()
        self._episode_id: str | None = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> KernelObservation:
        """`reset_async` for threads without an event loop."""
        return run_async_safely(self.reset_async(seed, episode_id, **kwargs))

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> KernelObservation:
        """Starts an episode. The one before has ended, even if this fails.

        Args:
            seed: draws the problem if none is named. Held-out problems are drawn only with
                `split="held_out"`.
            episode_id: ID of the episode in the state.
            kwargs: `problem_id`, or `split` with or without `index`.

        Raises:
            ValueError: for an unknown name or a value out of range.
            ProblemError: if the problem is unknown, or its reference fails.
            JudgeError: if the judge fails.
        """
        self._require_open()
        await asyncio.to_thread(self._session.close)
        self._session, self._episode_id = self._open(), None
        request = ResetRequest.of({"seed": seed, "episode_id": episode_id, **kwargs})
        if request.seed is not None:
            self._random.seed(request.seed)
        await self._session.start(self._tasks.choose(request, self._random).id)
        self._episode_id = request.episode_id
        return await asyncio.to_thread(self._observe, self._require_episode())

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        """`step_async` for threads without an event loop."""
        return run_async_safely(self.step_async(action, timeout_s))

    _step_impl = step

    async def step_async(
        self, action: Action, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Takes one turn, or calls a tool. Judging is cancelled if the client is gone.

        Raises:
            EpisodeError: before `reset` and after the end of an episode.
            TimeoutError: if it takes longer than the limit or `timeout_s`; no turn is used up.
            JudgeError: if the judge fails; no turn is used up.
        """
        seconds = min(self._limits.step_timeout, timeout_s or self._limits.step_timeout)
        if isinstance(action, KernelAction):
            episode = self._require_episode()
            turn = await self._within(seconds, self._session.take_turn(action.code))
            return await asyncio.to_thread(self._observe, episode, turn)
        taken = len(self.state.turn_scores)
        observation = await super().step_async(action, seconds)
        if isinstance(observation, CallToolObservation):
            scores, observation.done = self.state.turn_scores, self._session.over
            observation.reward = scores[-1] if len(scores) > taken else None
        return observation

    @property
    def state(self) -> KernelState:
        """The state of the episode, or of the server if there is none."""
        state, episode = KernelState(**self._published), self._session.episode
        if episode is not None:
            scores, returns = self._paid(episode)
            best = best_speedup(episode.turns)
            state.episode_id = self._episode_id or episode.episode_id
            state.problem_id = episode.problem.id
            state.step_count = state.turn = len(scores)
            state.turn_scores, state.returns = scores, returns
            state.best_speedup, state.solved = best, best > _SOLVED
        return state

    def get_metadata(self) -> EnvironmentMetadata:
        """Content of `/metadata` and the web interface."""
        readme = resources.files("kevin_env.integrations.openenv") / "README.md"
        return EnvironmentMetadata(
            name=NAME,
            description=DESCRIPTION,
            readme_content=readme.read_text(encoding="utf-8"),
            version=metadata.version("kevin-env"),
        )

    def close(self) -> None:
        """Ends the session: drops the episode, cancels judging, and refuses further requests."""
        super().close()
        self._session.close()
        self._session = self._open()

    def list_splits(self) -> list[str | dict[str, str]]:
        """Task API: names of the splits, with OpenEnv's name for those held out."""
        return [
            {"name": name, "type": "test"} if name == "held_out" else name
            for name in self._tasks.splits()
        ]

    def list_tasks(self, split: str = "train") -> list[dict[str, Any]]:
        """The problems of a split: `train`, `held_out`, `all`, or a level such as `L1`."""
        return self._tasks.rows(split)

    def num_tasks(self, split: str) -> int:
        """Task API: how many tasks a split has."""
        return len(self._tasks.of_split(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Task API: one task.

        Raises:
            IndexError: if there is none.
        """
        if index < 0:
            raise IndexError(index)
        return self._tasks.rows(split)[index]

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Task API: tasks from `start` up to `stop`, exclusive."""
        return self._tasks.rows(split)[start:stop]

    def _open(self) -> AgentSession:
        return AgentSession(self._tasks.problems, self._pool, self._settings, math.inf, None)

    async def _use(self, name: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return await self._within(self._limits.step_timeout, use(self._session, name, values))

    async def _list(self, name: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if unknown := values.keys() - {"split"}:
            raise ValueError(f"{name} takes split, not {min(unknown)[:100]!r}")
        rows = self.list_tasks(str(values.get("split", "train")))
        return json.dumps(rows), {"result": rows}

    async def _within(self, seconds: float, answering: Coroutine[Any, Any, T]) -> T:
        """The answer. Judging is cancelled after that time, or once the client has left."""
        session, answer = self._session, asyncio.ensure_future(answering)
        gone = asyncio.ensure_future(LEFT.get(asyncio.Event()).wait())
        try:
            await asyncio.wait([answer, gone], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and await asyncio.to_thread(session.cancel):
                await asyncio.gather(answer, return_exceptions=True)
                raise TimeoutError(f"not judged within {seconds:g} s; send the same code again")
            return await answer
        finally:
            answer.cancel()
            gone.cancel()

    def _observe(self, episode: Episode, turn: Turn | None = None) -> KernelObservation:
        scores, returns = self._paid(episode)
        problem = episode.problem
        return KernelObservation(
            done=episode.done,
            reward=scores[-1] if turn else 0.0,
            problem_id=problem.id,
            problem_description=problem.statement or problem.name,
            reference_code=shown_source(problem),
            gpu_info=_device_line(episode.trajectory.hardware),
            messages=[each.model_dump() for each in episode.messages_by(build_messages)],
            turn=len(episode.turns),
            turn_scores=scores,
            returns=returns,
            metadata={"step": turn.turn, "solved": best_speedup(episode.turns) > _SOLVED}
            if turn
            else {},
            **_verdict(turn),
            **self._published,
        )

    def _paid(self, episode: Episode) -> tuple[list[float], list[float]]:
        """The turns' scores within the declared range, and the returns of these."""
        low, high = self._range
        scores = [min(max(turn.score, low), high) for turn in episode.turns]
        return scores, list(
            discounted_returns(scores, self._settings.gamma, self._settings.returns)
        )

    def _require_open(self) -> None:
        if self.mcp_client is None:
            raise EpisodeError("this session has ended; connect again")

    def _require_episode(self) -> Episode:
        self._require_open()
        if self._session.episode is None:
            raise EpisodeError(
                "there is no episode; send reset first, over the same WebSocket (/ws), "
                "or call get_problem"
            )
        return self._session.episode


def reward_range(score: str | Score) -> tuple[float, float]:
    """The range of the reward; an infinite end is clipped to `MOST`.

    0 to `MOST` for functions that are not a `WeightedSum`.
    """
    known = resolve_score(score)
    low, high = known.range if isinstance(known, WeightedSum) else (0.0, MOST)
    return low, high if math.isfinite(high) else MOST


def _verdict(turn: Turn | None) -> dict[str, Any]:
    """The fields of an observation that describe the outcome; after a reset, kernrl's."""
    if turn is None:
        return {"compilation_success": True}
    outcome = turn.outcome
    built = outcome.category in ("runtime", "correctness", "correct")
    return {
        "feedback": turn.feedback,
        "category": outcome.category,
        "kind": outcome.kind,
        "compilation_success": built,
        "compilation_error": None if built else _error(outcome),
        "correctness_pass": outcome.category == "correct" if built else None,
        "max_diff": outcome.worst_error if isinstance(outcome, Incorrect) else None,
        "speedup": speedup_of(outcome),
        "speedup_interval": turn.speedup_interval,
    }


def _error(outcome: Outcome) -> str:
    details = outcome.details if isinstance(outcome, CompileError) else ""
    return f"{outcome.message}\n{details}".strip()


def _device_line(device: DeviceInfo | None) -> str:
    if device is None:
        return ""
    capability = f", compute capability {device.capability}" if device.capability else ""
    return f"{device.name} ({device.device}{capability})"
