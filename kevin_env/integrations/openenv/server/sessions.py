"""Sessions: their limits. A session lasts as long as the WebSocket of its client."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kevin_env.outcome import Frozen

_LOG = logging.getLogger(__name__)
_TOO_BIG = 1009
"""The code with which a WebSocket is closed after a message that is too large."""
LEFT: ContextVar[asyncio.Event] = ContextVar("LEFT")
"""Set when the client of the current WebSocket has disconnected."""


class ServerLimits(Frozen):
    """The limits of one server. Times in seconds, sizes in bytes."""

    sessions: int = Field(default=32, ge=1)
    """Limit of concurrent sessions; further clients get an error."""
    step_timeout: float = Field(default=900.0, gt=0)
    """Limit of one step, waiting for the device included. A longer step fails, without a turn."""
    idle_timeout: float = Field(default=1800.0, gt=0)
    """Limit of a session without messages."""
    attach_timeout: float = Field(default=30.0, gt=0)
    """How long a session created by HTTP may have no WebSocket."""
    message_bytes: int = Field(default=1 << 20, ge=1024)
    """Of one message, and of the body of one request."""


class SocketMiddleware:
    """ASGI middleware for WebSockets: checks origins and ends idle sessions.

    A client that is silent for `idle_timeout` is disconnected; the time of a step does not count. A
    WebSocket attached to a session created by HTTP may be silent, since its client calls tools by
    HTTP. Web pages of other origins are refused, since any page could run code on the server
    otherwise.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self.app = app
        self.seconds, self.message_bytes = limits.idle_timeout, limits.message_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        messages: asyncio.Queue[Message] = asyncio.Queue(1)
        left = asyncio.Event()

        async def read() -> None:
            while (message := await receive())["type"] != "websocket.disconnect":
                await messages.put(message)
            if message.get("code") == _TOO_BIG:
                _LOG.warning(
                    "a session was ended since its client sent more than %d bytes in one message",
                    self.message_bytes,
                )
            left.set()
            await messages.put(message)

        seconds = None if _is_attached(scope) else self.seconds

        async def next_message() -> Message:
            try:
                return await asyncio.wait_for(messages.get(), seconds)
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": 1001}

        async def answer(message: Message) -> None:
            # OpenEnv would try to send the error; the next receive ends the session.
            with suppress(OSError):
                await send(message)

        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
        elif _from_elsewhere(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
        else:
            LEFT.set(left)
            reading = asyncio.ensure_future(read())
            try:
                await self.app(scope, next_message, answer)
            finally:
                reading.cancel()


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a request is from a web page of another host; only browsers send an origin."""
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _is_attached(scope: Scope) -> bool:
    """Whether a WebSocket is for a session that was created by HTTP."""
    named = QueryParams(scope.get("query_string", b"")).get("session_id")
    return bool(named) and scope["path"].endswith("/ws")


class HttpSessions:
    """OpenEnv's route `POST /mcp`, with a limit for sessions without a WebSocket.

    OpenEnv's MCP client creates a session by HTTP and attaches a WebSocket to it. A request to
    close the session follows after `seconds`. OpenEnv carries it out at once if no WebSocket is
    attached, and otherwise when the WebSocket is closed.

    Args:
        handle: OpenEnv's handler of the route.
        seconds: until the request to close a session.
    """

    def __init__(self, handle: Callable[[Request], Awaitable[Any]], seconds: float) -> None:
        self._handle, self._seconds = handle, seconds
        self._closing: set[asyncio.Task[None]] = set()

    async def post(self, request: Request) -> Response:
        """Answers a JSON-RPC request."""
        if _from_elsewhere(request.headers):
            return Response(status_code=403)
        answer = await self._handle(request)
        session = (answer.get("result") or {}).get("session_id")
        if session is not None and "closed" not in answer["result"]:
            task = asyncio.create_task(self._close(session))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return JSONResponse(answer)

    async def _close(self, session: str) -> None:
        await asyncio.sleep(self._seconds)
        rpc = {"jsonrpc": "2.0", "method": "openenv/session/close"}
        body = json.dumps(rpc | {"params": {"session_id": session}}).encode()

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        await self._handle(Request({"type": "http", "method": "POST", "headers": []}, receive))
