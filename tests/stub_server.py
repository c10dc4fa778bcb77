"""A loopback server that speaks as much of the OpenAI protocol as a test scripts, and misbehaves as
it is told.
"""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kevin_env.record import Message

CHAT = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="Write a kernel."),
)
"""What a model is asked."""


@dataclass
class Answer:
    """One response: events of a stream, which a plain request gets in one piece, or an error with a
    JSON body.
    """

    chunks: Iterable[dict[str, Any]] = ()
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Close the connection in the middle."""
    pause: float = 0.0
    """Seconds before each event."""
    raw: bytes | None = None
    """Sent as it stands, instead of everything above but status and headers."""


Script = Answer | Callable[[dict[str, Any]], Answer]
"""An answer, or what makes one of the request."""


@dataclass
class Stub:
    """The running server: where it is, what it will answer, what it was asked."""

    url: str
    answers: list[Script]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """When each request came."""
    lists_models: int = 404
    """The status with which it answers when asked for its models."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with it."""
    listed_for: list[str] = field(default_factory=list)
    """The keys with which it was asked for them."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: dict[str, Any], key: str) -> Answer:
        """The next answer; the last one serves for ever."""
        with self.lock:
            self.requests.append(request)
            self.keys.append(key)
            self.times.append(time.monotonic())
            script = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return script(request) if callable(script) else script


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def usage(**fields: Any) -> dict[str, Any]:
    """The last chunk, which has no choices."""
    return delta() | {"choices": [], "usage": fields}


def whole(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The chunks of a stream as one completion."""
    message: dict[str, Any] = {}
    finish = None
    body: dict[str, Any] = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    for chunk in chunks:
        body |= {name: chunk[name] for name in ("usage", "error") if name in chunk}
        for choice in chunk.get("choices", ()):
            finish = choice["finish_reason"] or finish
            for name, value in choice["delta"].items():
                message[name] = message.get(name, "") + value if isinstance(value, str) else value
    return body | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


@contextmanager
def serve(*answers: Script, tls: ssl.SSLContext | None = None) -> Iterator[Stub]:
    """Runs the server while the block runs; one answer a request, then the last one for ever."""
    stub = Stub("", list(answers))
    server = _Server(("127.0.0.1", 0), _handler(stub))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    stub.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away early is no event."""


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            stub.listed_for.append(self.headers.get("Authorization", ""))
            self._send(stub.lists_models, b'{"detail": "Not Found"}', stub.headers)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            answer = stub.take(request, self.headers.get("Authorization", ""))
            if answer.raw is not None:
                self._send(answer.status, answer.raw, answer.headers)
            elif answer.status != 200:
                self._send(answer.status, json.dumps(answer.body).encode(), answer.headers)
            elif request.get("stream"):
                self._stream(answer)
            else:
                time.sleep(answer.pause)
                self._send(
                    200, json.dumps(whole(answer.chunks)).encode(), answer.headers, answer.cut
                )

        def _stream(self, answer: Answer) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in answer.chunks:
                time.sleep(answer.pause)
                self._piece(f"data: {json.dumps(chunk)}\n\n".encode())
            if answer.cut:
                self.close_connection = True
                return
            self._piece(b"data: [DONE]\n\n")
            self._piece(b"")

        def _piece(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _send(
            self, status: int, body: bytes, headers: dict[str, str], cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) * 2 if cut else len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = self.close_connection or cut

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
