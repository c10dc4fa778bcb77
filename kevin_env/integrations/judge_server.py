"""A judge pool served over HTTP, so that training and judging run on different machines.

`kevin_env.judge.http_pool.HttpPool` is its client. Any client can run code on this machine, since a
problem's reference is not sandboxed: without a token it listens on the loopback interface only. It
has no TLS; use a proxy for that.

    PUT    /v1/requests/{id}                    202, also if it has this ID already; 429 when busy
    GET    /v1/requests/{id}?wait=20&seen=1     {"stages": [...]} after these, or the answer; 404
    DELETE /v1/requests/{id}                    cancels it, and forgets its answer
    GET    /v1/device?name=auto
"""

import asyncio
import hmac
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from kevin_env.candidate.wire import LIMIT
from kevin_env.judge.api import DeviceInfo, JudgeError, JudgePool, Options, Stage
from kevin_env.judge.http_pool import POLL_SECONDS, RETRY_SECONDS, TOKEN, VERSION
from kevin_env.judge.protocol import answer_of, perform

AT_ONCE = 64
"""Default limit of requests in progress; further ones are refused with status 429."""
FORGET_SECONDS = 120.0
"""A request is cancelled and forgotten if no client has polled it for this long."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


@dataclass(eq=False)
class _Entry:
    """A request, its stages so far, and when its client last polled it (`time.monotonic`)."""

    future: Future[Any] = field(default_factory=Future[Any])
    stages: list[Stage] = field(default_factory=list[Stage])
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    last_seen: float = field(default_factory=time.monotonic)


class Requests:
    """The requests of a server, by ID. Use it in the server's event loop.

    Args:
        pool: judges the requests.
        device: replaces `auto`.
        at_once: limit of requests in progress.
        require_sandbox: whether every request requires a complete sandbox.
    """

    def __init__(
        self, pool: JudgePool, device: str = "auto", at_once: int = AT_ONCE,
        require_sandbox: bool = False,
    ) -> None:  # fmt: skip
        self.pool = pool
        self.device = device
        self._at_once = at_once
        self._require_sandbox = require_sandbox
        self._entries: dict[str, _Entry] = {}

    def begin(self, number: str, body: dict[str, Any]) -> bool:
        """Starts a request unless it is known; False if there are too many in progress.

        Raises:
            ValueError: if it is malformed.
        """
        if number in self._entries:
            return True
        if sum(not entry.future.done() for entry in self._entries.values()) >= self._at_once:
            return False
        entry, loop = _Entry(), asyncio.get_running_loop()

        def on_stage(stage: Stage) -> None:
            entry.stages.append(stage)
            loop.call_soon_threadsafe(entry.changed.set)

        def on_end(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(entry.changed.set)

        options = self._options(body["options"]).model_dump()
        entry.future = perform(self.pool, body | {"options": options}, on_stage)
        entry.future.add_done_callback(on_end)
        self._entries[number] = entry
        return True

    async def answer(self, number: str, seen: int, seconds: float) -> dict[str, Any] | None:
        """The answer, or the stages after the first `seen`, within `seconds`; None if unknown."""
        entry = self._entries.get(number)
        if entry is None:
            return None
        entry.last_seen = time.monotonic()
        if not entry.future.done() and len(entry.stages) <= seen:
            entry.changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(entry.changed.wait(), seconds)
        entry.last_seen = time.monotonic()
        if entry.future.done():
            return answer_of(entry.future.result) | {"done": True}
        return {"stages": entry.stages[seen:]}

    def drop(self, number: str) -> None:
        """Cancels a request, or forgets its answer."""
        entry = self._entries.pop(number, None)
        if entry is not None:
            entry.future.cancel()

    def drop_abandoned(self) -> None:
        """Drops the requests of clients that stopped polling."""
        end = time.monotonic() - FORGET_SECONDS
        for number in [each for each, entry in self._entries.items() if entry.last_seen < end]:
            self.drop(number)

    def _options(self, values: Any) -> Options:
        options = Options.model_validate(values)
        device = self.device if options.device == "auto" else options.device
        sandbox = options.require_sandbox or self._require_sandbox
        return options.model_copy(update={"device": device, "require_sandbox": sandbox})


def make_app(requests: Requests, token: str = "", hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """The ASGI application.

    Args:
        requests: the requests that it serves; the caller closes their pool.
        token: the token that clients must send; empty for none.
        hosts: the Host headers that it accepts, so that no web page can reach a local server by
            DNS rebinding; `*` is any.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async def tidy() -> None:
            while True:
                await asyncio.sleep(FORGET_SECONDS / 4)
                requests.drop_abandoned()

        task = asyncio.create_task(tidy())
        yield
        task.cancel()

    app = FastAPI(title="kevin-env judge server", lifespan=lifespan, openapi_url=None)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=LIMIT)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))

    @app.middleware("http")
    async def require_token(request: Request, proceed: Any) -> Any:
        authorization = request.headers.get("Authorization", "").encode()
        if token and not hmac.compare_digest(authorization, f"Bearer {token}".encode()):
            return JSONResponse({"detail": "a token is required"}, 401)
        return await proceed(request)

    @app.put(f"/{VERSION}/requests/{{number}}")
    async def put(number: str, body: dict[str, Any]) -> JSONResponse:
        try:
            accepted = requests.begin(number, body)
        except (KeyError, ValidationError) as error:
            return JSONResponse({"detail": f"malformed: {error}"}, 422)
        if not accepted:
            return JSONResponse({"retry_after": RETRY_SECONDS}, 429)
        return JSONResponse({}, 202)

    @app.get(f"/{VERSION}/requests/{{number}}")
    async def get(number: str, seen: int = 0, wait: float = 0.0) -> JSONResponse:
        answer = await requests.answer(number, max(0, seen), min(max(0.0, wait), POLL_SECONDS))
        return JSONResponse({"forgotten": True}, 404) if answer is None else JSONResponse(answer)

    @app.delete(f"/{VERSION}/requests/{{number}}")
    async def delete(number: str) -> JSONResponse:
        requests.drop(number)
        return JSONResponse({})

    @app.get(f"/{VERSION}/device")
    async def device(name: str = "auto") -> JSONResponse:
        try:
            chosen = requests.device if name == "auto" else name
            info = await asyncio.to_thread(_device_of, requests.pool, chosen)
        except JudgeError as error:
            return JSONResponse({"judge_error": str(error)})
        return JSONResponse({"device": info.model_dump(mode="json")})

    return app


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free port.

    Raises:
        OSError: if the address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_token_for(host: str, token: str) -> None:
    """Raises `ValueError` if an address needs a token and there is none."""
    if not token and not is_loopback(host):
        raise ValueError(
            f"other machines can reach {host}, and any client of a judge server can run code here: "
            f"set {TOKEN} to a secret, or listen on 127.0.0.1"
        )


def make_server(app: FastAPI) -> uvicorn.Server:
    """Serves `app` with `run(sockets=[listen(host, port)])`."""
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
    )


def _device_of(pool: JudgePool, name: str) -> DeviceInfo:
    find = getattr(pool, "device", None)
    if callable(find):
        return DeviceInfo.model_validate(find(name))
    raise JudgeError("this pool does not describe its devices")
