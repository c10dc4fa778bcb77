"""An MCP server on the official SDK: each session of a client is an `AgentSession`."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, ClassVar, Literal

import uvicorn
from mcp.server.fastmcp.server import StreamableHTTPASGIApp
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from kevin_env.agents.session import AgentSession, Best, Profiled, Standing, Task, Verdict
from kevin_env.frozen import Frozen
from kevin_env.integrations.judge_server import LOOPBACK, RequireToken
from kevin_env.templates import render

PATH = "/mcp"
MOST_CODE = 1 << 20
"""Characters of a file that is submitted."""
SESSIONS = 64
"""Concurrent sessions of one HTTP server; a further one is refused."""

Lifespan = Callable[[Any], AbstractAsyncContextManager[AgentSession]]
"""Opens what one session of a client plays, given the server."""


class _Arguments(Frozen):
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class GetProblem(_Arguments):
    """The task: a PyTorch module to rewrite as a faster kernel.

    The first call starts the episode and its time.
    """

    problem_id: str | None = None
    """Which problem to start with; by default one is drawn. It cannot be changed later."""


class SubmitKernel(_Arguments):
    """Builds, checks and times a kernel, and answers with verdict, feedback and score.

    Takes one turn; the code of the last turn again takes none. It may take minutes.
    """

    code: str = Field(max_length=MOST_CODE)
    """One complete Python file that defines `ModelNew`."""


class ProfileKernel(_Arguments):
    """Tells where the time of a correct kernel goes. Takes no turn."""

    turn: int | None = None
    """The turn whose kernel to profile; by default the best one."""
    kind: Literal["kernels", "ncu"] = "kernels"
    """Time by kernel, or what Nsight Compute says about the longest one (on GPUs)."""


class BestSoFar(_Arguments):
    """The best kernel so far with its code, all turns in short, and the turns and time left."""


TOOLS: dict[str, tuple[type[_Arguments], type[Standing]]] = {
    "get_problem": (GetProblem, Task),
    "submit_kernel": (SubmitKernel, Verdict),
    "profile_kernel": (ProfileKernel, Profiled),
    "best_so_far": (BestSoFar, Best),
}
"""By name: arguments and structured result."""


def make_server(lifespan: Lifespan) -> Server[AgentSession, Any]:
    """The server, for any transport.

    Args:
        lifespan: opens the `AgentSession` of each session of a client, and closes it at its end;
            see `one_each`.
    """
    # Otherwise it prints every wrong call; the client gets the error.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    server: Server[AgentSession, Any] = Server(
        "kevin-env", version("kevin-env"), lifespan=lifespan,
        instructions="Call get_problem, then submit_kernel until no turn or time is left.",
    )  # fmt: skip

    @server.list_tools()
    async def tools() -> list[Tool]:
        return [
            Tool(
                name=name,
                description=" ".join((given.__doc__ or "").split()),
                inputSchema=given.model_json_schema(),
                outputSchema=answer.model_json_schema(mode="serialization"),
            )
            for name, (given, answer) in TOOLS.items()
        ]

    @server.call_tool(validate_input=False)
    async def call(name: str, values: dict[str, Any]) -> CallToolResult:
        if name not in TOOLS:
            raise ValueError(f"unknown tool {name[:100]!r}; there are {', '.join(TOOLS)}")
        answer = await _answer(server, _arguments(name, values))
        fields = answer.model_dump(mode="json")
        text = TextContent(type="text", text=render(f"agents/{name}.j2", **fields).strip())
        return CallToolResult(content=[text], structuredContent=fields)

    return server


def one_each(open_session: Callable[[], AgentSession]) -> Lifespan:
    """A lifespan in which each session of a client has its own episode, and closes it."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[AgentSession]:
        session = open_session()
        try:
            yield session
        finally:
            session.close()

    return lifespan


async def serve_stdio(server: Server[AgentSession, Any]) -> None:
    """Serves one client until it closes the standard input of this process."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def make_app(
    server: Server[AgentSession, Any], token: str = "", *, stateless: bool = False
) -> Starlette:
    """The ASGI application, at the path `/mcp`.

    Args:
        server: the MCP server.
        token: the token that clients must send; empty for none. Without one, only requests to
            names of this machine are served, and none of web pages.
        stateless: whether all requests belong to one session.
    """
    hosts = [each for host in LOOPBACK for each in (host, f"{host}:*")]
    manager = StreamableHTTPSessionManager(
        server,
        stateless=stateless,
        max_sessions=SESSIONS,
        security_settings=TransportSecuritySettings(
            enable_dns_rebinding_protection=not token, allowed_hosts=hosts
        ),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(
        routes=[Route(PATH, StreamableHTTPASGIApp(manager))],
        middleware=[Middleware(RequireToken, token=token)],
        lifespan=lifespan,
    )


def make_http_server(app: ASGIApp) -> uvicorn.Server:
    """Serves `app` with `run(sockets=[listen(host, port)])`."""
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="error", server_header=False, timeout_graceful_shutdown=2, ws="none"
        )
    )


async def _answer(server: Server[AgentSession, Any], given: _Arguments) -> Standing:
    request = server.request_context
    session, client = request.lifespan_context, request.session.client_params

    async def report(seconds: float, doing: str) -> None:
        if request.meta is not None and request.meta.progressToken is not None:
            await request.session.send_progress_notification(
                request.meta.progressToken, seconds,
                message=doing, related_request_id=str(request.request_id),
            )  # fmt: skip

    match given:
        case GetProblem():
            name = client.clientInfo.name if client else "agent"
            return await session.start(given.problem_id, name)
        case SubmitKernel():
            return await session.submit(given.code, report)
        case ProfileKernel():
            return await session.profile(given.turn, given.kind, report)
        case _:
            return session.best()


def _arguments(name: str, values: dict[str, Any]) -> _Arguments:
    """Raises ValueError, in one line without the values."""
    kind, _ = TOOLS[name]
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(_faults(error))
        raise ValueError(f"{name}: {faults}; it takes {', '.join(kind.model_fields)}") from None


def _faults(error: ValidationError) -> Iterator[str]:
    for each in error.errors():
        yield f"{'.'.join(map(str, each['loc']))[:100]}: {each['msg']}"
