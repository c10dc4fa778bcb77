"""A local HTTP server for the page of a trajectory file or folder that grows.

The page polls for changes once a second. Requests with a foreign Host header are rejected, so that
other sites cannot read the trajectories by DNS rebinding.
"""

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.export import require_room
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.page import episode_data, following_page
from kevin_env.app.replay.plain import Choice, passes
from kevin_env.app.replay.rows import Row
from kevin_env.record import Trajectory

HOST = "127.0.0.1"
_CHANGES = re.compile(r"/changes/(\d{1,18})")


def serve(library: Library, choice: Choice, port: int, on_url: Callable[[str], None]) -> None:
    """Serves the page of the chosen trajectories until interrupted (Ctrl-C).

    Port 0 is any free one. `on_url` is called with the page's address when the server is ready.

    Raises:
        BadInput: if there are too many trajectories for a page, or the port cannot be used.
    """
    changes = Changes(library, choice)
    require_room(changes.rows())
    try:
        server = Server(changes, port)
    except (OSError, OverflowError) as error:
        raise BadInput(f"cannot serve on port {port}: {error}") from error
    with server, contextlib.suppress(KeyboardInterrupt):
        on_url(server.url)
        server.serve_forever(poll_interval=0.1)


class Changes:
    """The changes of a library's chosen episodes, by version. Thread-safe."""

    def __init__(self, library: Library, choice: Choice) -> None:
        self.title = library.path.resolve().name
        self._library, self._choice = library, choice
        self._lock = threading.Lock()
        # From the clock, so that versions of an earlier server are recognized as unknown.
        self._first = self._version = time.time_ns() // 1_000_000
        self._shown: dict[str, tuple[Row, int]] = {}

    def rows(self) -> list[Row]:
        """The chosen episodes."""
        with self._lock:
            self._read()
            return [row for row, _ in self._shown.values()]

    def since(self, version: int) -> dict[str, Any]:
        """The episodes that changed since `version`, all if it is unknown, and the order of all."""
        with self._lock:
            self._read()
            known = version if self._first < version <= self._version else 0
            changed = {key: row for key, (row, at) in self._shown.items() if at > known}
            read = {key: self._library.episode(row) for key, row in changed.items()}
            return {
                "version": self._version,
                "order": list(self._shown),
                "episodes": {
                    key: episode_data(each)
                    for key, each in read.items()
                    if isinstance(each, Trajectory)
                },
            }

    def _read(self) -> None:
        if not self._library.refresh() and self._version > self._first:
            return
        self._library.advance()
        self._version += 1
        before, self._shown = self._shown, {}
        for row in self._library.rows:  # of several with the same id the last counts
            key = f"{row.place.path}/{row.episode_id}"
            if passes(row, self._choice):
                known = before.get(key)
                self._shown[key] = known if known and known[0] == row else (row, self._version)


class Server(ThreadingHTTPServer):
    """The server, bound to the loopback interface."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, changes: Changes, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.changes = changes
        self.url = f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores browsers that close the connection early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        changes = self.server.changes
        match = _CHANGES.fullmatch(self.path)
        if self.headers.get("Host") not in _names(self.server.server_port):
            self.send_error(403, "unknown host")
        elif self.path == "/":
            self._send("text/html", following_page(changes.title))
        elif match:
            found = changes.since(int(match[1]))
            self._send("application/json", json.dumps(found, allow_nan=False))
        else:
            self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""

    def _send(self, kind: str, text: str) -> None:
        body = text.encode()
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _names(port: int) -> tuple[str, ...]:
    names = (HOST, "localhost")
    return (*(f"{name}:{port}" for name in names), *(names if port == 80 else ()))
