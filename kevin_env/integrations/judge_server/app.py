"""The HTTP application of a judge server."""

import asyncio
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from kevin_env.candidate.wire import LIMIT
from kevin_env.integrations.judge_server.connections import is_loopback
from kevin_env.integrations.judge_server.requests import Requests
from kevin_env.judge.api import DeviceInfo, JudgeError, JudgePool
from kevin_env.pools.http import CLIENT, POLL_SECONDS, RETRY_SECONDS, VERSION

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
OPEN = ("/healthz", "/metrics")
"""Paths for which clients on this machine need no token."""
MOST_DETAIL = 300
"""Characters of an error's text."""


def make_app(
    requests: Requests,
    token: str = "",
    hosts: Sequence[str] = LOOPBACK,
    starts: Mapping[str, int] | None = None,
) -> FastAPI:
    """The ASGI application.

    Args:
        requests: the requests that it serves; the caller closes their pool.
        token: the token that clients must send; empty for none.
        hosts: the Host headers that it accepts, so that no web page can reach a local server by
            DNS rebinding; `*` is any.
        starts: how many judges the pool has started by device, for `/metrics`.
    """
    app = FastAPI(title="kevin-env judge server", openapi_url=None)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=LIMIT)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(RequireToken, token=token)

    @app.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
        return _malformed(_told(error.errors()))

    @app.put(f"/{VERSION}/requests/{{number}}")
    async def put(number: str, request: Request) -> Response:
        client = request.headers.get(CLIENT, "")
        if not re.fullmatch("[A-Za-z0-9_-]{0,64}", client):
            return _malformed(f"{CLIENT}: use up to 64 letters, digits, hyphens and underscores")
        try:
            body = await request.body()
            accepted = requests.begin(number, _object(body), len(body), client)
        except ClientDisconnect:
            return Response()
        except ValidationError as error:
            return _malformed(_told(error.errors()))
        except KeyError as error:
            return _malformed(f"{error.args[0]} is missing")
        except (ValueError, RecursionError) as error:
            return _malformed(str(error))
        if not accepted:
            headers = {"Retry-After": f"{RETRY_SECONDS:.0f}"}
            return JSONResponse({"detail": "too much is waiting"}, 429, headers)
        return JSONResponse({}, 202)

    @app.get(f"/{VERSION}/requests/{{number}}")
    async def get(number: str, request: Request, seen: int = 0, wait: float = 0.0) -> JSONResponse:
        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        seconds = min(max(0.0, wait), POLL_SECONDS)
        answer = await requests.answer(number, max(0, seen), seconds, gone)
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

    @app.api_route("/healthz", methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        return JSONResponse({"waiting": requests.waiting, "in_flight": requests.in_flight})

    @app.get("/metrics")
    async def metrics() -> Response:
        try:
            from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        except ImportError:
            return PlainTextResponse("pip install 'kevin-env[prometheus]'\n", 501)
        registry = CollectorRegistry()
        registry.register(_Collector(requests, starts or {}))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return app


class RequireToken:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode() if token else b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        answer: ASGIApp = self._app
        if scope["type"] == "http" and not self._admits(scope):
            answer = JSONResponse({"detail": "a token is required"}, 401)
        await answer(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("Authorization", "").encode()
        if not self._expected or hmac.compare_digest(given, self._expected):
            return True
        host, _ = scope["client"] or ("", 0)
        return scope["path"] in OPEN and is_loopback(host)


class _Collector:
    """What Prometheus is told about a server."""

    def __init__(self, requests: Requests, starts: Mapping[str, int]) -> None:
        self._requests, self._starts = requests, starts

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            SummaryMetricFamily,
        )

        requests, tally = self._requests, self._requests.tally
        yield GaugeMetricFamily(
            "kevin_env_waiting", "Requests that wait for their turn.", requests.waiting
        )
        yield GaugeMetricFamily(
            "kevin_env_in_flight", "Requests that judges have.", requests.in_flight
        )
        yield CounterMetricFamily(
            "kevin_env_refused", "Requests for which there was no room.", tally.refused
        )
        judged = CounterMetricFamily(
            "kevin_env_judgements", "Judgements by their ending.", labels=["ending"]
        )
        for ending, count in tally.endings.items():
            judged.add_metric([ending], count)
        seconds = SummaryMetricFamily(
            "kevin_env_stage_seconds", "Seconds of a stage.", labels=["stage"]
        )
        for stage, total in tally.seconds.items():
            seconds.add_metric([stage], tally.judgements, total)
        started = CounterMetricFamily(
            "kevin_env_judge_starts", "Judges that were started.", labels=["device"]
        )
        for device, count in self._starts.items():
            started.add_metric([device], count)
        yield from (judged, seconds, started)


def _object(body: bytes) -> dict[str, Any]:
    """Raises `ValueError` or `RecursionError` if this is no JSON object."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _malformed(text: str) -> JSONResponse:
    return JSONResponse({"detail": f"malformed: {text[:MOST_DETAIL]}"}, 422)


def _told(errors: Iterable[Mapping[str, Any]]) -> str:
    """Errors of pydantic, without the values that caused them."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'the value'}: {each['msg']}" for each in errors
    )


def _device_of(pool: JudgePool, name: str) -> DeviceInfo:
    find = getattr(pool, "device", None)
    if callable(find):
        return DeviceInfo.model_validate(find(name))
    raise JudgeError("this pool does not describe its devices")
