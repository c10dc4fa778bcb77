"""A judge server in this process, and requests that are sent to it without `HttpPool`."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from kevin_env.integrations.judge_server import Requests, listen, make_app, make_server
from kevin_env.judge import JudgePool, Options, Submission
from kevin_env.outcome import Correct, Outcome
from kevin_env.pools.http import HttpPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem

PROBLEM = Problem(id="p", name="p", source="x = 1\n")
RIGHT = Correct(kind="timed", message="right", speedup=2.0)
CODE = Submission(code="x")
OPTIONS = Options(device="cpu")

Serve = Callable[..., tuple[HttpPool, Requests]]
"""Serves a pool; returns a client and the server's requests."""


@contextmanager
def served(
    pool: JudgePool, token: str = "", given: str = "", **more: Any
) -> Iterator[tuple[HttpPool, Requests]]:
    """A client and the requests of a server; `more` is for `Requests`."""
    requests = Requests(pool, **more)
    with listen("127.0.0.1", 0) as sock:
        server = make_server(make_app(requests, token), requests.stop)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        try:
            with HttpPool(url, given or token, patience=5) as client:
                yield client, requests
        finally:
            server.should_exit = True
            thread.join(10)


class Held:
    """A script whose answers wait until they are let go, all or `more` of them."""

    def __init__(self) -> None:
        self.go, self.running = threading.Event(), threading.Semaphore(0)
        self.more = threading.Semaphore(0)
        self.ran = list[str]()

    def __call__(self, problem: Problem, submission: Submission) -> Outcome:
        self.ran.append(submission.code)
        self.running.release()
        end = time.monotonic() + 20
        while not (self.go.is_set() or self.more.acquire(timeout=0.02)):
            assert time.monotonic() < end
        return RIGHT


class Unending(ScriptedPool):
    """Judgements that begin and never end."""

    def submit(self, *_: Any) -> Future[Any]:
        self.begun.append(Future())
        return self.begun[-1]

    @property
    def begun(self) -> list[Future[Any]]:
        return self.__dict__.setdefault("_begun", [])


def put(client: HttpPool, body: bytes, number: str = "a", **headers: str) -> int:
    """The status of a request that is sent without our client."""
    return sent(client, "PUT", f"/v1/requests/{number}", body, **headers)[0]


def sent(
    client: HttpPool, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    """Status, text and headers of an answer; in names of headers, `_` stands for a hyphen."""
    connection = http.client.HTTPConnection(address_of(client), timeout=20)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named | {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def address_of(client: HttpPool) -> str:
    return client.url.removeprefix("http://")


def body_of(code: str = "x", do: str = "judge", **options: Any) -> bytes:
    whole = {"do": do, "problem": PROBLEM.model_dump(), "options": OPTIONS.model_dump() | options}
    return json.dumps(whole | {"submission": Submission(code=code).model_dump()}).encode()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
