"""Frames on a Unix socket: a length of four bytes, then JSON; file descriptors may be attached.

Both ends use it. A reader never accepts more than `LIMIT` bytes, never waits beyond its deadline,
and never unpickles.
"""

import array
import errno
import json
import select
import socket
import time
from typing import Any

LIMIT = 8 << 20
_HEADER = 4
_CHUNK = 1 << 16
_MAX_FDS = 16


class WireError(Exception):
    """The other end violated the protocol: too long, or no JSON object."""


class Closed(WireError):
    """The other end is gone."""


class TooLong(WireError):
    """A frame to send is too long for any reader."""


class Late(WireError):
    """Nothing complete arrived before the deadline."""


def encode(message: dict[str, Any]) -> bytes:
    """A message as a frame."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return len(body).to_bytes(_HEADER, "big") + body


def decode(body: bytes) -> dict[str, Any]:
    """The message in a frame's body.

    Raises:
        WireError: if it is no JSON object.
    """
    try:
        message = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise WireError("a frame is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("a frame is not a JSON object")
    return message


class Channel:
    """One end of a connection.

    Args:
        sock: A connected Unix stream socket; the channel owns it.
        takes_fds: Whether attached descriptors are accepted. Otherwise the kernel drops them: an
            untrusted end could fill this process's table.
    """

    def __init__(self, sock: socket.socket, takes_fds: bool = False) -> None:
        self.sock = sock
        self.takes_fds = takes_fds
        self._buffer = bytearray()
        self._fds: list[int] = []

    def send(
        self, message: dict[str, Any], fds: tuple[int, ...] = (), timeout: float | None = None
    ) -> None:
        """Sends one frame.

        Args:
            message: A JSON object.
            fds: Descriptors to attach.
            timeout: Seconds to wait for room; None waits forever.

        Raises:
            Late: at the deadline.
            Closed: if the other end is gone.
            TooLong: if no reader would accept it; nothing was sent.
        """
        self.send_frame(encode(message), fds, timeout)

    def send_frame(
        self, frame: bytes, fds: tuple[int, ...] = (), timeout: float | None = None
    ) -> None:
        """Sends an encoded frame. Arguments and errors as `send`."""
        if len(frame) > LIMIT + _HEADER:
            raise TooLong(f"a message of {len(frame)} bytes; at most {LIMIT} are sent")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.sock.settimeout(timeout)
            sent = self.sock.sendmsg([frame], rights) if fds else self.sock.send(frame)
            if sent < len(frame):
                self.sock.sendall(frame[sent:])
        except TimeoutError as error:
            raise Late("the other end does not read") from error
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:  # descriptors in flight; the other end is alive
                raise
            raise Closed(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next frame.

        Args:
            timeout: Seconds to wait; None waits forever.

        Raises:
            Late: at the deadline.
            Closed: if the other end is gone.
            WireError: if the frame is no JSON object, or too long.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (body := self._take()) is None:
            self._fill(deadline)
        return decode(body)

    def pending(self, seconds: float = 0.0) -> bool:
        """Whether there are unread bytes, or some arrive within `seconds`."""
        return bool(self._buffer) or self._readable(seconds)

    def ended(self) -> bool:
        """Whether the other end is gone, with nothing left to read."""
        if self._buffer or not self._readable(0):
            return False
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def take_fds(self) -> list[int]:
        """Descriptors attached to the frames so far; the caller owns them."""
        fds, self._fds = self._fds, []
        return fds

    def close(self) -> None:
        """Closes the socket. Idempotent."""
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
        if self._buffer and deadline is not None and time.monotonic() > deadline:
            raise Late("no complete answer in time")  # a slow sender would never miss the next one
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._readable(timeout):
            raise Late("no answer in time")
        data = self._recv()
        if not data:
            raise Closed("the other end is gone")
        self._buffer += data

    def _readable(self, timeout: float | None) -> bool:
        if self.sock.fileno() < 0:  # closed; reading reports it
            return True
        poll = select.poll()  # select() fails with more than a thousand open files
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1e3))

    def _recv(self) -> bytes:
        try:
            if not self.takes_fds:
                return self.sock.recv(_CHUNK)
            data, fds, _, _ = socket.recv_fds(self.sock, _CHUNK, _MAX_FDS)
        except OSError:
            return b""
        self._fds += fds
        return data
