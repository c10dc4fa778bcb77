"""What an unknown client may do: how many sessions, how large messages, how long silences, and not
from other pages.
"""

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from urllib.parse import urlsplit

from pydantic import Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kevin_env.outcome import Frozen

LEFT: ContextVar[asyncio.Event] = ContextVar("LEFT")
"""Set once the client of the WebSocket at hand has left."""


class ServerLimits(Frozen):
    """The limits of one server. Times in seconds, sizes in bytes."""

    sessions: int = Field(default=32, ge=1)
    """Sessions at once; one more is told so and closed."""
    step_timeout: float = Field(default=900.0, gt=0)
    """For one step, waiting for the device included. What takes longer is an error, and the turn
    has not happened.
    """
    idle_timeout: float = Field(default=1800.0, gt=0)
    """How long a session may be silent before it is ended."""
    message_bytes: int = Field(default=1 << 20, ge=1024)
    """Of one message, and of the body of one request."""


class SocketMiddleware:
    """ASGI middleware for WebSockets: whom it lets in, and when they are over.

    Silence of `seconds` is a disconnect. While a step is taken nobody waits for a message, so that
    its time does not count. A browser that comes from a page of another origin is refused: it would
    let any page that a user looks at run code on the user's own server.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        messages: asyncio.Queue[Message] = asyncio.Queue(1)
        left = asyncio.Event()

        async def read() -> None:
            while (message := await receive())["type"] != "websocket.disconnect":
                await messages.put(message)
            left.set()
            await messages.put(message)

        async def next_message() -> Message:
            try:
                return await asyncio.wait_for(messages.get(), self.seconds)
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": 1001}

        async def answer(message: Message) -> None:
            # OpenEnv would try again to tell the client that it could not be told; the next receive
            # tells that it left.
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
    """Whether a page of another host asks; clients that are no browsers name no origin."""
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
