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
from pathlib import Path
from typing import Any, NamedTuple

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.export import require_room
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.page import codes_data, episode_data, following_page
from kevin_env.app.replay.plain import Choice, passes
from kevin_env.app.replay.rows import Row
from kevin_env.record import Trajectory

HOST = "127.0.0.1"
_CHANGES = re.compile(r"/changes/(\d{1,18})/(\d{1,9})")


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


class _Shown(NamedTuple):
    number: int
    """Identifies the episode while the server runs."""
    row: Row
    version: int
    """Version of its last change."""


class Changes:
    """The changes of a library's chosen episodes, by version. Thread-safe.

    An answer takes about `seconds` at most, or as long as one episode.
    """

    def __init__(self, library: Library, choice: Choice, seconds: float = 1.0) -> None:
        self.title = library.path.resolve().name
        self._library, self._choice, self._seconds = library, choice, seconds
        self._lock = threading.Lock()
        # From the clock, so that versions of an earlier server are recognized as unknown.
        self._first = self._version = time.time_ns() // 1_000_000
        self._shown: dict[tuple[Path, str], _Shown] = {}
        self._numbers: dict[tuple[Path, str], int] = {}
        self._codes: dict[str, int] = {}

    def rows(self) -> list[Row]:
        """The chosen episodes."""
        with self._lock:
            self._read()
            return [each.row for each in self._shown.values()]

    def since(self, version: int, codes: int) -> dict[str, Any]:
        """What changed since `version`, for a page that has the first `codes` kernels.

        Everything if the version is unknown; the newest episodes come first. If there is `more`, it
        comes in the next answer.
        """
        with self._lock:
            self._read()
            if not self._first < version <= self._version:
                version = codes = 0
            shown = self._shown.values()
            changed = [each for each in shown if each.version > version]
            episodes: dict[int, dict[str, Any]] = {}
            end = time.monotonic() + self._seconds
            for each in sorted(changed, key=lambda each: each.version):
                read = self._library.episode(each.row)
                if isinstance(read, Trajectory):
                    episodes[each.number] = episode_data(read, self._codes)
                version = each.version
                if time.monotonic() > end:
                    break
            more = any(each.version > version for each in changed)
            return {
                "version": version if more else self._version,
                "more": more,
                "order": [each.number for each in shown],
                "episodes": episodes,
                "from": codes,
                "codes": codes_data(list(self._codes)[codes:]),
            }

    def _read(self) -> None:
        changed = self._library.refresh()
        while self._library.advance(1.0):
            changed = True
        if not changed and self._version > self._first:
            return
        before, self._shown = self._shown, {}
        rows = self._library.rows
        for row in reversed(rows):
            known = before.get(row.key)
            if known is not None and known.row == row:
                self._shown[row.key] = known
            elif passes(row, self._choice):
                self._version += 1
                number = self._numbers.setdefault(row.key, len(self._numbers))
                self._shown[row.key] = _Shown(number, row, self._version)
        self._version += bool(before.keys() - self._shown.keys())
        self._shown = dict(reversed(self._shown.items()))


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
            found = changes.since(int(match[1]), int(match[2]))
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
