"""An MCP server on the official SDK: each session of a client is an `AgentSession`."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

import uvicorn
from mcp.server.fastmcp.server import StreamableHTTPASGIApp
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, TextContent, Tool
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from kevin_env.integrations.judge_server import LOOPBACK, RequireToken
from kevin_env.session import AgentSession
from kevin_env.tools import described, use

PATH = "/mcp"
SESSIONS = 64
"""Concurrent sessions of one HTTP server; a further one is refused."""

Lifespan = Callable[[Any], AbstractAsyncContextManager[AgentSession]]
"""Opens what one session of a client plays, given the server."""


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
        instructions="Call get_problem, then submit_kernel until turns or time run out.",
    )  # fmt: skip

    @server.list_tools()
    async def tools() -> list[Tool]:
        return [
            Tool(name=name, description=about, inputSchema=given, outputSchema=answer)
            for name, (about, given, answer) in described().items()
        ]

    @server.call_tool(validate_input=False)
    async def call(name: str, values: dict[str, Any]) -> CallToolResult:
        request = server.request_context
        client = request.session.client_params

        async def report(seconds: float, doing: str) -> None:
            if request.meta is not None and request.meta.progressToken is not None:
                await request.session.send_progress_notification(
                    request.meta.progressToken, seconds,
                    message=doing, related_request_id=str(request.request_id),
                )  # fmt: skip

        agent = client.clientInfo.name if client else "agent"
        said, fields = await use(request.lifespan_context, name, values, report, agent)
        text = TextContent(type="text", text=said)
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
    server: Server[AgentSession, Any], token: str = "", *, idle: float | None = 3600.0
) -> Starlette:
    """The ASGI application, at the path `/mcp`.

    Args:
        server: the MCP server.
        token: the token that clients must send; empty for none. Without one, only requests to
            names of this machine are served, and none of web pages.
        idle: seconds after which a session without requests ends; None if all requests belong to
            one session.
    """
    hosts = [each for host in LOOPBACK for each in (host, f"{host}:*")]
    manager = StreamableHTTPSessionManager(
        server,
        stateless=idle is None,
        session_idle_timeout=idle,
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
