"""A server for tests: in a thread, on a loopback port, made as `kevin-env serve` makes it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from kevin_env.integrations.judge_server import listen
from kevin_env.integrations.openenv.server.app import make_app, make_server
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import JudgePool, OnStage
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem


@contextmanager
def serving(
    pool: JudgePool,
    limits: ServerLimits | None = None,
    before_stop: Callable[[], None] | None = None,
    **arguments: Any,
) -> Iterator[str]:
    """Where a server over `pool` is, for as long as the block runs; its end is that of the server."""
    server = make_server(make_app(pool, limits=limits, **arguments), limits, before_stop)
    sock = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def until(happened: Callable[[], Any], seconds: float = 60.0) -> None:
    """Waits until something has happened."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def socket_to(url: str, path: str = "ws") -> ClientConnection:
    """A WebSocket without OpenEnv's client."""
    return connect(f"{url.replace('http', 'ws')}/{path}", proxy=None, legacy=True)


def fits(url: str) -> bool:
    """Whether the server has room for one more session."""
    with socket_to(url) as client:
        # One too many gets an error and is closed, perhaps before it has sent anything.
        with suppress(ConnectionClosed):
            client.send('{"type": "state"}')
        return json.loads(client.recv(timeout=20))["type"] == "state"


class Endless(ScriptedPool):
    """Never comes to a verdict."""

    def __init__(self) -> None:
        super().__init__([])
        self.judging: list[Future[Judgement]] = []

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        self.judging.append(Future())
        return self.judging[-1]
