"""The environment for verifiers 0.4, whose policy can also have tools: any harness with MCP.

With `tools`, one run of the agent `policy` plays the episode with the tool `submit_kernel`, such as
a coding agent of verifiers' (`--env.policy.harness.id codex`). Its trace has the score of its best
kernel as the reward. Without, it is the chat of `kevin_env.integrations.verifiers`.
"""

# pyright: reportMissingImports=false
# Its pins conflict with those of the type checkers.

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from verifiers.v1.mcp import SharedToolServer
from verifiers.v1.types import UserMessage

from kevin_env.integrations.verifiers import KernelEnv as ChatEnv
from kevin_env.integrations.verifiers import KernelEnvConfig as ChatEnvConfig
from kevin_env.integrations.verifiers import KernelTask
from kevin_env.problem import load_problem
from kevin_env.record import Trajectory, best_turn
from kevin_env.recorder import Recorder
from kevin_env.session import AgentSession
from kevin_env.tools import use

_HOW = "\n\nHave it judged with the tool `submit_kernel` until turns or time run out."


class KernelEnvConfig(ChatEnvConfig):
    """How episodes are played and recorded."""

    tools: bool = False
    """Whether the policy has tools, in place of a chat."""
    minutes: float = 60.0
    """Time for an episode with tools, judging included."""


class KernelEnv(ChatEnv, vf.Env[KernelEnvConfig]):
    """Plays an episode as a chat or with tools."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Plays one episode.

        Raises:
            ProblemError: if the problem is unknown, or its reference fails.
            JudgeError: if the judge fails before the first turn; with tools, later failures are
                answers to the policy.
            RuntimeError: if the policy failed.
            ValueError: with tools, if the settings are only for chats.
        """
        if not self.config.tools:
            return await super().run(task, agents)
        if (templates := self.config.settings.templates) != "default":
            raise ValueError(f"templates={templates!r} is for chats; leave it out")
        assert isinstance(task, KernelTask)
        session = AgentSession(
            (load_problem(task.data.problem),), self.pool(), self.config.settings,
            60 * self.config.minutes, Recorder(self.config.record) if self.config.record else None,
        )  # fmt: skip
        begun = await session.start(agent=agents.policy.ctx.model)
        prompt = task.with_data(prompt=[UserMessage(content=begun.task + _HOW)])
        ended: Trajectory | None = None
        try:
            async with _served(session) as url:
                trace = await agents.policy.run(
                    prompt, tools={"kevin": SharedToolServer(url=url, local=True)}
                )
                await session.settled()
        finally:
            ended = await asyncio.to_thread(session.close, "agent_ended")
        if not trace.ok:
            raise RuntimeError("the policy failed; its trace says why")
        assert ended is not None
        best = best_turn(ended.turns)
        trace.record_reward("best_score", max((turn.score for turn in ended.turns), default=0.0))
        trace.record_metrics({"turns": len(ended.turns), "correct": float(best is not None)})
        if best is not None and best.speedup is not None:
            trace.record_metric("speedup", best.speedup)


@asynccontextmanager
async def _served(session: AgentSession) -> AsyncIterator[str]:
    """The URL of the session's tools on this machine, which nobody else can guess."""

    async def submit_kernel(code: str) -> str:
        """Builds, checks and times a kernel, a complete Python file. Takes one turn."""
        return (await use(session, "submit_kernel", {"code": code}))[0]

    async def best_so_far() -> str:
        """The best kernel so far with its code, a list of turns, and what is left."""
        return (await use(session, "best_so_far", {}))[0]

    tools, path = MCPServer("kevin-env"), f"/{secrets.token_urlsafe(32)}"
    for each in (submit_kernel, best_so_far):
        tools.add_tool(each, structured_output=False)
    app = tools.streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True,
        # Harnesses in containers reach it by other names.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )  # fmt: skip
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}{path}"
        finally:
            server.should_exit = True
            await serving
