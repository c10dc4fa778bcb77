"""The judge's line to the keeper of one candidate: it stops the candidate, lets it go on, and tells
how it ended.

No submission has this line: what comes from it is no claim.
"""

import signal
import socket
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.api import JudgeError, Sandbox
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import Ended

SECONDS = 10.0
"""For any answer of the keeper's."""


class SupervisorChannel:
    """One end of it; the other is the keeper's.

    Attributes:
        stood_still: Whether the candidate did when it was stopped the last time, until it was let
            go on.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.stood_still = True
        self._keeper = Channel(sock)
        self._ended: Ended | None = None
        self._dismissed = False
        self._owed = 0
        """Answers to orders that were not waited for."""

    def greet(self) -> tuple[Sandbox, LevelName, int]:
        """What a new keeper says of itself: which protections hold, what they rest on, and its
        process.

        Raises:
            JudgeError: when it does not.
        """
        try:
            hello = self._keeper.receive(SECONDS)
            return Sandbox.model_validate(hello["sandbox"]), hello["level"], hello["pid"]
        except (WireError, KeyError, ValidationError) as error:
            raise JudgeError(str(error)) from error

    def freeze(self, frozen: bool, wait: bool) -> None:
        """As `Worker.freeze`."""
        if wait:
            self.settle()
        if not self._dismissed and self._ended is None:
            with suppress(WireError):  # what the keeper said before it went is still to be read
                self._keeper.send({"freeze": frozen})
            self._owed += 1
        if wait:
            self.settle()

    def settle(self) -> None:
        """As `Worker.settle`."""
        while self._owed > 0:
            self._owed -= 1
            self.stood_still = not self._hear().get("ran")
        self._require_there()

    def lend(self, name: str, size: int) -> None:
        """Tells of memory of this machine that is not the candidate's own. Errors as `settle`."""
        self.settle()
        with suppress(Closed):  # as in `freeze`
            self._keeper.send({"lent": name, "size": size})
        self._hear()

    def report(self) -> None:
        """Has the candidate report where in its code it is. Errors as `settle`."""
        self.settle()
        with suppress(WireError):  # as in `freeze`
            self._keeper.send({"report": True})
        self._hear()

    def end(self, limit: str) -> None:
        """Has everything killed, from any thread; whoever waits for the candidate gets `Ended` with
        this limit.
        """
        with suppress(WireError):
            self._keeper.send({"end": limit}, timeout=SECONDS)

    def dismiss(self) -> None:
        """Has everything killed; the keeper is told nothing more, and `close` waits for its end."""
        self._dismissed = True
        with suppress(OSError):  # a half-close: the end of the keeper's side says that all are dead
            self._keeper.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Waits until all are dead. Twice is fine."""
        self.dismiss()
        with suppress(WireError):
            while True:
                self._keeper.receive(SECONDS)
        self._keeper.close()

    def why_ended(self) -> Ended | None:
        """How a candidate ended that answers no more; None where its keeper does not say so."""
        try:
            while "done" in (answer := self._keeper.receive(SECONDS)):
                self._owed -= 1
            self._ended = Ended(answer.get("ended"), answer.get("limit"))
        except WireError as error:
            if isinstance(error, Closed):  # the keeper is gone too: no submission can do that
                self._ended = self._ended or Ended()
        return self._ended

    @property
    def shot(self) -> bool:
        """As `Worker.shot`."""
        return (
            self._ended is not None
            and self._ended.limit is None
            and self._ended.code in (None, -signal.SIGKILL)
        )

    @property
    def limited(self) -> bool:
        """As `Worker.limited`."""
        return self._ended is not None and self._ended.limit is not None

    def _require_there(self) -> None:
        if self._dismissed:  # by the judge: that is no end of its own
            raise Ended
        if (
            self._ended is not None
        ):  # an answer that was late may come yet, and would be taken for that to a new order
            raise self._ended

    def _hear(self) -> dict[str, Any]:
        """The keeper's next answer; errors as `settle`."""
        self._require_there()
        try:
            answer = self._keeper.receive(SECONDS)
        except WireError as error:
            self._ended = self._ended or Ended()
            raise self._ended from error
        if "done" not in answer:
            self._ended = Ended(answer.get("ended"), answer.get("limit"))
            raise self._ended
        return answer
