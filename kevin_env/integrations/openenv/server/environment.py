"""An `Episode` as an OpenEnv environment."""

import asyncio
import math
import random
from concurrent.futures import Future
from importlib import metadata, resources
from typing import Any

from fastmcp import FastMCP
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolObservation
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation
from openenv.core.utils import run_async_safely

from kevin_env.episode import Episode, EpisodeError
from kevin_env.extract import as_reply
from kevin_env.integrations.openenv.models import KernelAction, KernelObservation, KernelState
from kevin_env.integrations.openenv.server.sessions import LEFT, ServerLimits
from kevin_env.integrations.openenv.server.tasks import ResetRequest, Tasks
from kevin_env.judge.api import DeviceInfo, JudgePool
from kevin_env.outcome import CompileError, Incorrect, Outcome, speedup_of
from kevin_env.problem import shown_source
from kevin_env.record import Turn, best_speedup
from kevin_env.score import Score, WeightedSum, discounted_returns, resolve_score
from kevin_env.settings import Settings

NAME = "kernel_env"
DESCRIPTION = (
    "Rewrite a PyTorch module as a GPU kernel over several turns, "
    "judged outside the kernel's own process."
)
MOST = 10.3
"""Upper end of an unbounded reward: with the default score, ten times as fast."""
_SOLVED = 1.05
"""As in kernrl, a problem is solved with a speedup above this."""
_TASK = {"problem_id", "problem_description", "reference_code", "gpu_info", "messages"}
"""Fields of an observation that `get_problem` returns, and `submit_kernel` does not."""


class KernelEnvironment(MCPEnvironment):
    """One session: one episode at a time, judged by a pool that all sessions share.

    Nothing starts before the first `reset`, or `get_problem` of the MCP tools.

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
        tools = FastMCP(NAME)
        for tool in (self.list_problems, self.get_problem, self.submit_kernel):
            tools.tool(tool)
        super().__init__(tools)
        self._pool, self._tasks, self._settings, self._limits = pool, tasks, settings, limits
        self._range = reward_range(settings.score)
        self._random = random.Random()
        self._episode: Episode | None = None
        self._episode_id: str | None = None
        self._judging: Future[Turn] | None = None
        self._device = ""
        self._closed = False

    def reset(
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
        self._episode = self._episode_id = None
        request = ResetRequest.of({"seed": seed, "episode_id": episode_id, **kwargs})
        if request.seed is not None:
            self._random.seed(request.seed)
        episode = Episode(
            self._tasks.choose(request, self._random), self._pool, self._settings, model="openenv"
        )
        episode.start()
        self._device = _device_line(episode.trajectory.hardware)
        self._episode_id = request.episode_id or episode.episode_id
        self._episode = episode
        return self._observe(episode)

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
        if not isinstance(action, KernelAction):
            return await self._call(action, timeout_s or self._limits.step_timeout)
        episode = self._require_episode()
        judging = self._judging = await asyncio.to_thread(
            lambda: episode.submit_later(as_reply(action.code))
        )
        budget = min(self._limits.step_timeout, timeout_s or self._limits.step_timeout)
        turn = asyncio.wrap_future(judging)
        leaving = asyncio.ensure_future(LEFT.get(asyncio.Event()).wait())
        done, _ = await asyncio.wait(
            [turn, leaving], timeout=budget, return_when=asyncio.FIRST_COMPLETED
        )
        leaving.cancel()
        if turn not in done and judging.cancel():
            raise TimeoutError(f"not judged within {budget:g} s; the same action may be sent again")
        self._require_open()
        return self._observe(episode, await turn)

    def list_problems(self, split: str = "train") -> list[dict[str, Any]]:
        """Lists the problems that `get_problem` can start with.

        Args:
            split: `train`, `held_out`, `all`, or a level such as `L1`.
        """
        return self.list_tasks(split)

    async def get_problem(self, problem_id: str | None = None) -> dict[str, Any]:
        """The task: a PyTorch module to rewrite as a GPU kernel. The first call starts the episode.

        Args:
            problem_id: Which problem to start with; by default one is drawn. It cannot be changed
                later.
        """
        episode = self._episode
        if episode is None:
            observation = await asyncio.to_thread(self.reset, problem_id=problem_id)
        elif problem_id in (None, episode.problem.id):
            observation = self._observe(episode)
        else:
            raise EpisodeError(f"the problem of this episode is {episode.problem.id}")
        return observation.model_dump(mode="json", include={*_TASK, "turn", "max_turns"})

    async def submit_kernel(self, code: str) -> dict[str, Any]:
        """Compiles, checks and times a kernel, and returns the outcome. Uses up one turn.

        Args:
            code: One complete Python file that defines `ModelNew`.
        """
        observation = await self.step_async(KernelAction(code=code))
        return observation.model_dump(mode="json", exclude=_TASK)

    @property
    def state(self) -> KernelState:
        """The state of the episode, or of the server if there is none."""
        state = KernelState(
            max_turns=self._settings.max_turns,
            reward_range=self._range,
            step_timeout_s=self._limits.step_timeout,
            idle_timeout_s=self._limits.idle_timeout,
            message_bytes=self._limits.message_bytes,
        )
        episode = self._episode
        if episode is not None:
            scores, returns = self._paid(episode)
            best = best_speedup(episode.turns)
            state.episode_id, state.problem_id = self._episode_id, episode.problem.id
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
        self._closed = True
        self._episode = None
        if self._judging is not None:
            self._judging.cancel()
            self._judging = None

    def list_splits(self) -> list[str | dict[str, str]]:
        """Task API: names of the splits, with OpenEnv's name for those held out."""
        return [
            {"name": name, "type": "test"} if name == "held_out" else name
            for name in self._tasks.splits()
        ]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Task API: the tasks of a split; `id` is the problem_id."""
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

    async def _call(self, action: Action, timeout_s: float) -> Observation:
        observation = await super().step_async(action, timeout_s)
        if isinstance(observation, CallToolObservation) and observation.error is None:
            judged = observation.result.structured_content
            observation.reward, observation.done = judged.get("reward"), judged.get("done", False)
        return observation

    def _observe(self, episode: Episode, turn: Turn | None = None) -> KernelObservation:
        scores, returns = self._paid(episode)
        problem = episode.problem
        return KernelObservation(
            done=episode.done,
            reward=scores[-1] if turn else 0.0,
            problem_id=problem.id,
            problem_description=problem.statement or problem.name,
            reference_code=shown_source(problem),
            gpu_info=self._device,
            messages=[message.model_dump() for message in episode.messages],
            turn=len(episode.turns),
            max_turns=self._settings.max_turns,
            turn_scores=scores,
            returns=returns,
            reward_range=self._range,
            step_timeout_s=self._limits.step_timeout,
            idle_timeout_s=self._limits.idle_timeout,
            message_bytes=self._limits.message_bytes,
            metadata={"step": turn.turn, "solved": best_speedup(episode.turns) > _SOLVED}
            if turn
            else {},
            **_verdict(turn),
        )

    def _paid(self, episode: Episode) -> tuple[list[float], list[float]]:
        """The turns' scores within the declared range, and the returns of these."""
        low, high = self._range
        scores = [min(max(turn.score, low), high) for turn in episode.turns]
        return scores, list(
            discounted_returns(scores, self._settings.gamma, self._settings.returns)
        )

    def _require_open(self) -> None:
        if self._closed:
            raise EpisodeError("this session has ended; connect again")

    def _require_episode(self) -> Episode:
        self._require_open()
        if self._episode is None:
            raise EpisodeError(
                "there is no episode; send reset first, over the same WebSocket (/ws), "
                "or call get_problem"
            )
        return self._episode


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
