"""A loopback server that speaks as much of the OpenAI protocol as a test scripts."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One response: events of a stream, or an error with a JSON body."""

    chunks: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Close the connection in the middle of the stream."""


@dataclass
class Stub:
    """The running server: where it is, what it will answer, what it was asked."""

    url: str
    answers: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def usage(**fields: Any) -> dict[str, Any]:
    """The last chunk, which has no choices."""
    return delta() | {"choices": [], "usage": fields}


@contextmanager
def serve(*answers: Answer) -> Iterator[Stub]:
    """Runs the server while the block runs; one answer a request, then the last one for ever."""
    stub = Stub("", list(answers))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stub))
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            stub.requests.append(json.loads(self.rfile.read(length)))
            stub.keys.append(self.headers.get("Authorization", ""))
            answer = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
            self._stream(answer) if answer.status == 200 else self._error(answer)

        def _stream(self, answer: Answer) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in answer.chunks:
                self._piece(f"data: {json.dumps(chunk)}\n\n".encode())
            if answer.cut:
                self.close_connection = True
                return
            self._piece(b"data: [DONE]\n\n")
            self._piece(b"")

        def _piece(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _error(self, answer: Answer) -> None:
            body = json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
