"""A taskset and an environment for verifiers 0.4 (`pip install 'kevin-env[verifiers]'`).

verifiers finds them by the name of a module that exports both: `kevin_vf`, which the package in
`environments/kevin_vf` installs.

    vf-eval kevin-vf -m MODEL --client.base-url URL --env.taskset.problems L1
        --env.settings.max-turns 4 --no-push

Every turn is a separate agent run, so that its trace has the prompt as sent, without earlier
reasoning, and its discounted return as its reward.
"""

# pyright: reportMissingImports=false
# Its pins conflict with those of the type checkers.

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarnessConfig
from verifiers.v1.runtimes import SubprocessConfig
from verifiers.v1.types import Message, SystemMessage, UserMessage

from kevin_env.episode import Episode
from kevin_env.integrations.judging import process_pool, submit_async
from kevin_env.judge.api import JudgePool
from kevin_env.problem import load_problem
from kevin_env.record import Message as ChatMessage
from kevin_env.record import Reply, Turn
from kevin_env.recorder import Recorder
from kevin_env.selection import find_problems
from kevin_env.settings import Settings


class KernelTasksetConfig(vf.TasksetConfig):
    """The problems to play."""

    problems: str = "train"
    """As for `find_problems`: an ID, a level (without held-out problems), a side of the split, a
    path.
    """


class KernelData(vf.TaskData):
    """One problem; `problem` is its id, or the path of its file."""

    problem: str


class KernelTask(vf.Task[KernelData, vf.State, vf.TaskConfig]):
    """One problem. Its turns are the same task with other prompts."""

    @property
    def key(self) -> str:
        """The problem's id."""
        return self.data.id or self.data.problem


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """The problems in order."""

    def load(self) -> Iterator[KernelTask]:
        """One task a problem.

        Raises:
            ProblemError: if one is unknown.
        """
        for problem in find_problems(self.config.problems, held_out=False):
            data = KernelData(id=problem.id, name=problem.id, problem=problem.path or problem.id)
            yield KernelTask(data, self.config.task)


class KernelEnvConfig(vf.EnvConfig):
    """How episodes are played and recorded."""

    policy: vf.AgentConfig = vf.AgentConfig(
        harness=NullHarnessConfig(id="null"), runtime=SubprocessConfig()
    )
    """The agent that plays. It answers in text, so only its requests run on this machine."""
    settings: Settings = Settings()
    pool: str | None = None
    """URL of a judge server; by default the server that `KEVIN_ENV_POOL` names, or this machine."""
    record: Path | None = None
    """A trajectory file to write."""


class KernelEnv(vf.Env[KernelEnvConfig]):
    """Plays an episode: one run of the agent `policy` a turn."""

    def pool(self) -> JudgePool:
        """The judges that the configuration names."""
        return process_pool(self.config.pool)

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Plays one episode.

        Raises:
            ProblemError: if the problem is unknown, or its reference fails.
            JudgeError: if the judge fails twice.
            RuntimeError: if the policy gave no reply. The turns so far then have no return.
        """
        assert isinstance(task, KernelTask)
        episode = Episode(
            load_problem(task.data.problem), self.pool(), self.config.settings,
            recorder=Recorder(self.config.record) if self.config.record else None,
            model=agents.policy.ctx.model,
        )  # fmt: skip
        await asyncio.to_thread(episode.start)
        traces: list[vf.Trace] = []
        while not episode.done:
            trace = await agents.policy.run(task.with_data(prompt=_prompt(episode.messages)))
            if not trace.ok or not trace.assistant_messages:
                episode.finish("model_error")
                raise RuntimeError(
                    f"the policy gave no reply in turn {len(traces) + 1}; its trace says why"
                )
            await submit_async(episode, _reply(trace))
            traces.append(trace)
        for trace, turn, value in zip(traces, episode.turns, episode.returns, strict=True):
            _record(trace, turn, value)


def _prompt(chat: Sequence[ChatMessage]) -> list[Message]:
    kinds = {"system": SystemMessage, "user": UserMessage}
    return [kinds[message.role](content=message.content) for message in chat]


def _reply(trace: vf.Trace) -> Reply:
    message = trace.assistant_messages[-1]
    return Reply(
        content=message.content or "",
        reasoning=message.reasoning_content or None,
        truncated=trace.is_truncated,
    )


def _record(trace: vf.Trace, turn: Turn, value: float) -> None:
    trace.record_reward("turn_return", value)
    trace.record_metrics(
        {"turn": turn.turn, "score": turn.score, "correct": float(turn.category == "correct")}
    )
    if turn.speedup is not None:
        trace.record_metric("speedup", turn.speedup)
    trace.info["outcome"] = turn.outcome.model_dump(mode="json")
