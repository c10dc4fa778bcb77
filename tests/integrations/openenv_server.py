"""A server for tests: in a thread, on a loopback port, made as `kevin-env serve` makes it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kevin_env.integrations.openenv.server.app import listen, make_app, make_server
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.judge.api import JudgePool


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
