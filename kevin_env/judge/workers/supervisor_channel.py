"""The judge's channel to the supervisor of one candidate, which stops, continues and ends it.

No submission has this channel: what arrives on it is no claim.
"""

import socket
from contextlib import suppress
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.api import JudgeError
from kevin_env.judge.sandbox.attempts import Protection
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import Ended

SECONDS = 10.0
"""For any answer of the supervisor."""


class SupervisorChannel:
    """The judge's end of the channel."""

    def __init__(self, sock: socket.socket) -> None:
        self._channel = Channel(sock)
        self._ended: Ended | None = None
        self._dismissed = False
        self._owed = 0
        """Answers to orders that were not waited for."""

    def greet(self) -> tuple[tuple[Protection, ...], LevelName, int]:
        """What a new supervisor reports: protections that held, sandbox level and its own process.

        Raises:
            JudgeError: if it reports nothing valid.
        """
        try:
            hello = self._channel.receive(SECONDS)
            return tuple(hello["held"]), hello["level"], hello["pid"]
        except (WireError, KeyError) as error:
            raise JudgeError(str(error)) from error

    def freeze(self, frozen: bool, wait: bool) -> None:
        """See `Worker.freeze`."""
        if wait:
            self.settle()
        if not self._dismissed and self._ended is None:
            with suppress(WireError):  # its last message before it went is still to be read
                self._channel.send({"freeze": frozen})
            self._owed += 1
        if wait:
            self.settle()

    def settle(self) -> None:
        """See `Worker.settle`."""
        while self._owed > 0:
            self._owed -= 1
            self._receive()
        self._require_alive()

    def lend(self, name: str, size: int) -> None:
        """Reports memory of this machine that is not the candidate's. Errors as `settle`."""
        self._order({"lent": name, "size": size})

    def report(self) -> None:
        """Has the candidate report where in its code it is. Errors as `settle`."""
        self._order({"report": True})

    def end(self, limit: str) -> None:
        """See `Worker.end`."""
        with suppress(WireError):
            self._channel.send({"end": limit}, timeout=SECONDS)

    def dismiss(self) -> None:
        """Has everything killed. No more orders are sent; `close` waits for the end."""
        self._dismissed = True
        with suppress(OSError):  # a half-close: the supervisor closes its side when all are dead
            self._channel.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Waits until all are dead. Idempotent."""
        self.dismiss()
        with suppress(WireError):
            while True:
                self._channel.receive(SECONDS)
        self._channel.close()

    def why_ended(self) -> Ended | None:
        """How a candidate that no longer answers ended; None if the supervisor reports no end."""
        try:
            while "done" in (answer := self._channel.receive(SECONDS)):
                self._owed -= 1
            self._ended = Ended(answer.get("ended"), answer.get("limit"))
        except WireError as error:
            if isinstance(error, Closed):  # the supervisor is gone: no submission can do that
                self._ended = self._ended or Ended()
        return self._ended

    @property
    def shot(self) -> bool:
        """See `Worker.shot`."""
        return self._ended is not None and self._ended.killed_from_outside

    def _order(self, order: dict[str, Any]) -> None:
        self.settle()
        with suppress(WireError):  # as in `freeze`
            self._channel.send(order)
        self._receive()

    def _require_alive(self) -> None:
        if self._dismissed:  # by the judge: the candidate did not end by itself
            raise Ended
        if self._ended is not None:  # a late answer would be taken for that to a new order
            raise self._ended

    def _receive(self) -> dict[str, Any]:
        """The supervisor's next answer. Errors as `settle`."""
        self._require_alive()
        try:
            answer = self._channel.receive(SECONDS)
        except WireError as error:
            self._ended = self._ended or Ended()
            raise self._ended from error
        if "done" not in answer:
            self._ended = Ended(answer.get("ended"), answer.get("limit"))
            raise self._ended
        return answer
