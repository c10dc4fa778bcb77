"""The server: all sessions over one pool of judges."""

import asyncio
import functools
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.routing import Route

from kevin_env.episode import EpisodeError
from kevin_env.integrations.openenv.models import KernelAction, KernelObservation, KernelState
from kevin_env.integrations.openenv.server.environment import NAME, KernelEnvironment
from kevin_env.integrations.openenv.server.sessions import (
    HttpSessions,
    ServerLimits,
    SocketMiddleware,
)
from kevin_env.integrations.openenv.server.tasks import Tasks
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.problem import Problem, list_problems
from kevin_env.settings import Settings

_STATUS: dict[type[Exception], int] = {ValueError: 400, EpisodeError: 409, JudgeError: 503}
_GRACE_SECONDS = 5


def make_app(
    pool: JudgePool,
    settings: Settings | None = None,
    *,
    problems: Sequence[Problem] | None = None,
    limits: ServerLimits | None = None,
) -> FastAPI:
    """The ASGI application.

    Args:
        pool: the judges of all sessions; the caller closes them.
        settings: how episodes are played.
        problems: the problems to offer; by default all shipped ones.
        limits: limits of sessions, messages and times.
    """
    # Otherwise it prints a traceback for every wrong tool call; the client gets the error.
    logging.getLogger("fastmcp").setLevel(logging.CRITICAL)
    limits = limits or ServerLimits()
    tasks = Tasks(tuple(list_problems() if problems is None else problems))
    app = create_app(
        functools.partial(KernelEnvironment, pool, tasks, settings or Settings(), limits),
        KernelAction,
        KernelObservation,
        env_name=NAME,
        state_cls=KernelState,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=limits.sessions),
    )
    (mcp,) = [each for each in app.routes if isinstance(each, APIRoute) and each.path == "/mcp"]
    sessions = HttpSessions(mcp.endpoint, limits.attach_timeout)
    app.router.routes.insert(0, Route("/mcp", sessions.post, methods=["POST"]))
    app.add_middleware(SocketMiddleware, limits=limits)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=limits.message_bytes)
    for kind in _STATUS:
        app.add_exception_handler(kind, _refuse)
    return app


def make_server(
    app: Any, limits: ServerLimits | None = None, before_stop: Callable[[], None] | None = None
) -> uvicorn.Server:
    """A server for `app` that limits message sizes; `run(sockets=[listen(host, port)])` serves.

    Args:
        app: any ASGI application.
        limits: the limits of `app`.
        before_stop: called once when the server begins to stop, before it waits for running
            requests. Closing the pool there ends running steps.
    """
    limits = limits or ServerLimits()
    config = uvicorn.Config(
        app,
        ws_max_size=limits.message_bytes,
        limit_concurrency=2 * limits.sessions + 64,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        log_level="warning",
        server_header=False,
    )
    return _Server(config, before_stop)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._before_stop = before_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._before_stop is not None:
            await asyncio.to_thread(self._before_stop)
        await super().shutdown(sockets)


def _refuse(_: Request, error: Exception) -> JSONResponse:
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    return JSONResponse({"detail": str(error)}, status)


def __getattr__(name: str) -> Any:
    """The `app` of `openenv.yaml` for uvicorn, made on demand with its own judges."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kevin_env.pools.http import connect

    return make_app(connect(None))
