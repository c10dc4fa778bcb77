"""The connections of a judge server. None stays open without progress, and not too many do."""

import asyncio
import ipaddress
import resource
import socket
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kevin_env.judge.sandbox.system import have_descriptors
from kevin_env.pools.http import TOKEN

REQUEST_SECONDS = 30.0
"""A request has to arrive completely in this time; a connection may be idle for as long at most."""
ANSWER_SECONDS = 60.0
"""An answer has to be read in this time. Longer than a poll may take."""
CONNECTIONS = 8192
"""The most connections, if the process may have as many descriptors."""
SPARE_DESCRIPTORS = 1024
"""Left for judges and files; at most half of all."""
BACKLOG = 1024
"""Connections that the kernel holds until they are accepted."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free port.

    Raises:
        OSError: if the address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_token_for(host: str, token: str, variable: str = TOKEN) -> None:
    """Raises `ValueError` if an address needs a token and there is none."""
    if not token and not is_loopback(host):
        raise ValueError(
            f"other machines can reach {host}, and any client of the server can run code here: "
            f"set {variable} to a secret, or listen on 127.0.0.1"
        )


def make_server(app: Any, before_stop: Callable[[], None]) -> uvicorn.Server:
    """Serves `app` with `run(sockets=[listen(host, port)])`.

    Args:
        app: the application.
        before_stop: called in the event loop when it begins to stop, before it waits for requests.
    """
    config = uvicorn.Config(
        app,
        log_level="error",
        log_config=None,  # uvicorn's own needs a stdout
        server_header=False,
        timeout_graceful_shutdown=2,
        loop="asyncio",
        http=_Connection,
        ws="none",
        # asyncio accepts so many connections before any of them can be closed, and logs as many
        # errors if it cannot, before it waits for a second
        backlog=1,
        # a client of a proxy on this machine is not on this machine
        forwarded_allow_ips=["127.0.0.1", "::1"],
    )
    return _Server(config, before_stop)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_stop = before_stop
        self.server_state: _Connections = _Connections()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        have_descriptors()
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            fitting = max(soft - SPARE_DESCRIPTORS, soft // 2)
            self.server_state.most = min(CONNECTIONS, fitting)
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_stop()
        await super().shutdown(sockets)


class _Connections(ServerState):
    """All connections, of which at most `most` stay open."""

    def __init__(self) -> None:
        super().__init__()
        self.most = CONNECTIONS
        self.idle: OrderedDict[_Connection, None] = OrderedDict()
        """Those without a complete request, in the order in which they became so."""

    def make_room(self) -> None:
        """Closes the connection that has been without a request for longest, if there are too many.

        This is the newest one if all others have requests. A client that sends its request at
        once is served, however many connections others hold.
        """
        if self.idle and len(self.connections) > self.most:
            connection, _ = self.idle.popitem(last=False)
            self.connections.discard(connection)
            connection.transport.abort()


class _Connection(H11Protocol):
    """A connection that is closed unless each request, and each answer, is complete in time."""

    server_state: _Connections
    _deadline: asyncio.TimerHandle | None = None
    _idle: bool | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        self.server_state.make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.server_state.idle.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()

    def _watch(self) -> None:
        """Starts the time for a request or an answer when it begins."""
        idle = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if idle == self._idle or self.transport.is_closing():
            return
        self._idle = idle
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = REQUEST_SECONDS if idle else ANSWER_SECONDS
        self._deadline = self.loop.call_later(seconds, self.transport.abort)
        if idle:
            self.server_state.idle[self] = None
        else:
            self.server_state.idle.pop(self, None)
