"""Frames on a Unix socket: four bytes of length, then JSON; file descriptors may ride along.

Both ends use it. A reader never gets more than `LIMIT` bytes, never waits past its deadline, and never unpickles.
"""

import array
import json
import select
import socket
import time
from typing import Any

LIMIT = 8 << 20
_HEADER = 4
_MAX_FDS = 16
_SPINS_PER_CLOCK = 256


class WireError(Exception):
    """The other end broke the protocol: too long, not JSON, not an object."""


class Closed(WireError):
    """The other end is gone."""


class Late(WireError):
    """Nothing complete arrived before the deadline."""


class Channel:
    """One end of a connection.

    Args:
        sock: A connected Unix stream socket; the channel owns it.
        spin: Whether `receive` burns a core instead of sleeping. It saves the tens of microseconds that waking up
            takes, which matters where a GPU call is timed and would steal a core where a CPU kernel runs.
    """

    def __init__(self, sock: socket.socket, spin: bool = False) -> None:
        self.sock = sock
        self.spin = spin
        self._buffer = bytearray()
        self._fds: list[int] = []

    def send(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        """Sends one frame.

        Raises:
            Closed: if the other end is gone.
        """
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        frame = len(body).to_bytes(_HEADER, "big") + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.sock.setblocking(True)
            sent = self.sock.sendmsg([frame], rights)
            if sent < len(frame):
                self.sock.sendall(frame[sent:])
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next frame.

        Args:
            timeout: Seconds to wait at most; None waits for ever.

        Raises:
            Late: when the time is over.
            Closed: when the other end is gone.
            WireError: when the frame is no JSON object or too long.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (body := self._take()) is None:
            self._fill(deadline)
        try:
            message = json.loads(body)
        except ValueError as error:
            raise WireError("a frame is not JSON") from error
        if not isinstance(message, dict):
            raise WireError("a frame is not a JSON object")
        return message

    def pending(self) -> bool:
        """Whether bytes have arrived that nobody asked for."""
        return bool(self._buffer) or bool(select.select([self.sock], [], [], 0)[0])

    def take_fds(self) -> list[int]:
        """The file descriptors that came with the frames so far; the caller owns them now."""
        fds, self._fds = self._fds, []
        return fds

    def close(self) -> None:
        """Closes the socket. Twice is fine."""
        self.sock.close()

    def _take(self) -> bytes | None:
        if len(self._buffer) < _HEADER:
            return None
        end = _HEADER + int.from_bytes(self._buffer[:_HEADER], "big")
        if end > LIMIT:
            raise WireError(f"a frame is longer than {LIMIT} bytes")
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER:end])
        del self._buffer[:end]
        return body

    def _fill(self, deadline: float | None) -> None:
        data = self._spin(deadline) if self.spin else self._sleep(deadline)
        if not data:
            raise Closed("the other end is gone")
        self._buffer += data

    def _sleep(self, deadline: float | None) -> bytes:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([self.sock], [], [], timeout)[0]:
            raise Late("no answer in time")
        return self._recv()

    def _spin(self, deadline: float | None) -> bytes:
        self.sock.setblocking(False)
        while True:
            for _ in range(_SPINS_PER_CLOCK):
                try:
                    return self._recv()
                except BlockingIOError:
                    continue
            if deadline is not None and time.monotonic() > deadline:
                raise Late("no answer in time")

    def _recv(self) -> bytes:
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, _MAX_FDS)
        except BlockingIOError:
            raise
        except OSError:
            return b""
        self._fds += fds
        return data
