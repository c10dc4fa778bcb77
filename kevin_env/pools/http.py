"""A judge pool on another machine, over HTTP. Imports no torch.

The server is `kevin_env.integrations.judge_server`; `kevin-env judge-server` starts it. A request
has an ID that the client chooses, so that sending it again after a broken connection starts
nothing twice: each submission has at most one verdict.
"""

import http.client
import json
import logging
import math
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from kevin_env.candidate.wire import LIMIT
from kevin_env.judge.api import DeviceInfo, JudgeError, JudgePool, OnStage
from kevin_env.judge.protocol import Request, value_of
from kevin_env.pools.base import RequestPool

TOKEN = "KEVIN_ENV_JUDGE_TOKEN"
"""The environment variable with the token of the server."""
POOL = "KEVIN_ENV_POOL"
"""The environment variable with the name of the pool to use in place of this machine's devices."""
CLIENT = "Kevin-Client"
"""The header with the ID of a client; the server takes turns between clients."""
VERSION = "v1"
"""Of the protocol; the first part of every path."""
POLL_SECONDS = 20.0
"""How long the server may hold a poll until there is news."""
PATIENCE = 300.0
"""Seconds for which a server may be unreachable, such as while it restarts."""
RETRY_SECONDS, MOST_RETRY_SECONDS = 1.0, 60.0
"""Until a request is sent again; the server may ask for more, up to a limit."""
TRIES = 4
"""A request fails once the server has lost it this many times, for example by restarts."""
_BUSY, _GONE, _MALFORMED, _RETRIED = 429, 404, 422, (502, 503, 504)
_BROKEN = (OSError, http.client.HTTPException)
"""A server that is away, time-outs, and connections that break within an answer."""

_LOG = logging.getLogger(__name__)


class HttpPool(RequestPool):
    """The judges of a judge server. Safe to use from many threads.

    Requests wait while the server has no room for them, and for at most `patience` seconds while
    it cannot be reached.

    Args:
        url: such as `http://judges:8001`.
        token: of the server; by default the value of `KEVIN_ENV_JUDGE_TOKEN`.
        patience: seconds without an answer after which a request fails.

    Raises:
        ValueError: if that is no URL of a server, or the token cannot be sent.
    """

    def __init__(self, url: str, token: str | None = None, patience: float = PATIENCE) -> None:
        require_server_url(url)
        super().__init__()
        self.url = url.rstrip("/")
        self._token = token_of(os.environ.get(TOKEN, "") if token is None else token)
        self.public = not self._token
        self._client = uuid.uuid4().hex
        self._patience = patience
        self._open = set[Future[Any]]()
        self._warned = -math.inf
        """When it was last logged that the server cannot be reached."""
        self._closed = threading.Event()
        self._opener = urllib.request.build_opener(_NoRedirect)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._open = set[Future[Any]]()
        closed, self._closed = self._closed.is_set(), threading.Event()
        if closed:
            self._closed.set()

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is a client of the same server."""
        return HttpPool, (self.url, self._token, self._patience)

    def device(self, name: str = "auto") -> DeviceInfo:
        """What the server knows about a device.

        Raises:
            JudgeError: if it has none of that name, or cannot be reached.
        """
        _, answer = self._ask("GET", f"device?{urllib.parse.urlencode({'name': name})}")
        if "judge_error" in answer:
            raise JudgeError(answer["judge_error"])
        return DeviceInfo.model_validate(answer["device"])

    def close(self) -> None:
        """Fails what is still open; the server and its other clients go on."""
        self._closed.set()
        for future in tuple(self._open):
            self._fail(future, JudgeError("the pool is closed"))

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        self._settle_later(future, lambda: self._value(request, future, on_stage))

    def _value(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> Any:
        """Sends a request until it is answered; None if it was cancelled."""
        path = f"requests/{request['id']}"
        for _ in range(TRIES):
            self._start(path, request, future)
            seen = 0
            while not future.cancelled():
                status, answer = self._ask("GET", f"{path}?wait={POLL_SECONDS:g}&seen={seen}")
                if status != 200:
                    break
                if answer.get("done"):
                    self._drop(path)
                    return value_of(answer)
                if not isinstance(answer.get("stages"), list):
                    text = "its answer has neither a verdict nor stages"
                    raise JudgeError(f"{self.url} is not a judge server: {text}")
                for stage in answer["stages"]:
                    seen += 1
                    if on_stage is not None:
                        with suppress(Exception):  # a failing display must not affect the verdict
                            on_stage(stage)
            else:
                self._drop(path)
                return None
        raise JudgeError(f"{self.url} forgot a request {TRIES} times: it seems to be restarting")

    def _start(self, path: str, request: Request, future: Future[Any]) -> None:
        """Sends a request until the server accepts it."""
        while not future.cancelled():
            status, answer = self._ask("PUT", path, request)
            if status != _BUSY:
                return
            self._closed.wait(answer["retry_after"])

    def _drop(self, path: str) -> None:
        """Lets the server forget a request, and cancel it if it is still in progress."""
        with suppress(*_BROKEN, JudgeError):
            self._once("DELETE", path, None)

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """One request, again while the server cannot be reached: status and answer.

        Raises:
            JudgeError: if it stays so, if the server refuses the request, or the pool is closed.
        """
        end = time.monotonic() + self._patience
        while True:
            if self._closed.is_set():
                raise JudgeError("the pool is closed")
            try:
                return self._once(method, path, body)
            except _BROKEN as error:
                text = f"no judge server answers at {self.url}: {getattr(error, 'reason', error)}"
                if time.monotonic() > end:
                    raise JudgeError(text) from error
                now, before = time.monotonic(), self._warned
                if now - before > self._patience:
                    self._warned = now
                    _LOG.warning("%s; trying again for %g s", text, self._patience)
                self._closed.wait(RETRY_SECONDS)

    def _once(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, dict[str, Any]]:
        """Raises `OSError` if the server cannot be reached, `JudgeError` if it refuses."""
        headers = {"Content-Type": "application/json", CLIENT: self._client}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        if data is not None and len(data) > LIMIT:
            raise JudgeError(f"too long to be judged: {len(data)} bytes, at most {LIMIT} are sent")
        request = urllib.request.Request(
            f"{self.url}/{VERSION}/{path}", data=data, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=2 * POLL_SECONDS) as answer:
                return answer.status, self._object(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, self._refused(error)

    def _refused(self, error: urllib.error.HTTPError) -> dict[str, Any]:
        """The answer of a server that is full or has forgotten a request; others raise."""
        if error.code in _RETRIED:
            raise ConnectionError(f"HTTP status {error.code}")
        if error.code == _BUSY:
            return {"retry_after": _seconds(error.headers.get("Retry-After"))}
        if error.code in (401, 403):
            raise JudgeError(f"{self.url} refuses the token: set {TOKEN} to the server's")
        answer = self._object(error.read())
        if error.code == _GONE and answer.get("forgotten"):
            return answer
        if error.code == _GONE or error.code < 400 or "detail" not in answer:
            raise JudgeError(
                f"{self.url} is not a judge server: its answer has status {error.code}"
            )
        detail = str(answer["detail"])[:500]
        if error.code == _MALFORMED:
            detail += "; client and server must have the same version of kevin-env"
        raise JudgeError(f"{self.url} refuses the request ({error.code}): {detail}")

    def _object(self, body: bytes) -> dict[str, Any]:
        """Raises `JudgeError` if that is no JSON object, and so not of a judge server."""
        with suppress(ValueError, RecursionError):
            if isinstance(value := json.loads(body), dict):
                return value
        raise JudgeError(f"{self.url} is not a judge server: its answers are not JSON objects")


def require_server_url(url: str) -> None:
    """Raises `ValueError` if a judge server cannot be at this URL."""
    example = "give a URL such as http://127.0.0.1:8001, or ray"
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"pool is {url!r}, and {error}; {example}") from error
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"the URL of a pool has no user or password: set {TOKEN} to its token")
    usable = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not usable or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ValueError(f"pool is {url!r}; {example}")


def token_of(value: str, variable: str = TOKEN) -> str:
    """A token without white space around it.

    Raises:
        ValueError: if no header can contain it. The error does not.
    """
    token = value.strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"{variable} must consist of printable ASCII characters")
    return token


def connect(pool: JudgePool | str | None) -> JudgePool:
    """A pool as it is, or that of a name, see `named_pool`.

    Raises:
        ValueError: if it is none of these.
    """
    if pool is None or isinstance(pool, str):
        return named_pool(pool)
    if isinstance(pool, type) or not isinstance(pool, JudgePool):
        raise ValueError(
            f"pool is {pool!r}; give a pool such as kevin_env.pools.local.LocalPool(), the URL of a"
            " judge server, 'ray', or None"
        )
    return pool


def named_pool(name: str | None, patience: float = PATIENCE) -> RequestPool:
    """The judge server of a URL, or for `ray`, also with settings, the judges of a Ray cluster.

    None stands for the pool that `KEVIN_ENV_POOL` names, or the judges of this machine. `patience`
    is that of `HttpPool`.

    Raises:
        ValueError: if there is no such pool.
    """
    name = name or os.environ.get(POOL)
    if not name:
        from kevin_env.pools.local import LocalPool

        return LocalPool()
    if name.partition("?")[0] != "ray":
        return HttpPool(name, patience=patience)
    try:
        from kevin_env.pools.ray_pool import RayPool, RaySettings
    except ImportError as error:
        raise ValueError(f"{error}: pip install 'kevin-env[ray]'") from error
    return RayPool(RaySettings.of(name))


def _seconds(retry_after: str | None) -> float:
    """The seconds of a header `Retry-After`; a date is not read."""
    try:
        return min(max(RETRY_SECONDS, float(retry_after or 0)), MOST_RETRY_SECONDS)
    except ValueError:
        return RETRY_SECONDS


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another host would get the token."""

    def redirect_request(self, *_: Any) -> None:
        return None
