"""How an order to a candidate may fail."""

import signal
from typing import Any

from pydantic import Field, ValidationError

from kevin_env.judge.api import JudgeError
from kevin_env.outcome import Frozen


class Failure(Frozen):
    """A candidate's description of an exception in the submission. All of it is a claim."""

    kind: str = Field(max_length=40)
    type: str = Field(max_length=200)
    message: str = Field(max_length=10_000)
    frames: list[tuple[int, str, str]] = Field(max_length=50)
    output: str = Field(max_length=200_000)

    @classmethod
    def read(cls, claim: Any) -> "Failure":
        """Validates what came over the wire.

        Raises:
            Broken: if it is malformed.
        """
        try:
            return cls.model_validate(claim)
        except ValidationError as error:
            raise Broken("its description of a failure is malformed") from error


class CandidateError(Exception):
    """The candidate did not answer an order as it should."""


class Failed(CandidateError):
    """The submission raised."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Ended(CandidateError):
    """The process has ended.

    `code` is as in subprocess (negative for a signal); `limit` names a limit that it exceeded.
    """

    def __init__(self, code: int | None = None, limit: str | None = None) -> None:
        super().__init__(f"ended with {code}" if limit is None else limit)
        self.code = code
        self.limit = limit

    @property
    def killed_from_outside(self) -> bool:
        """Whether neither it nor its supervisor ended it, such as by the kernel for its memory."""
        return self.limit is None and self.code in (None, -signal.SIGKILL)


class TimedOut(CandidateError):
    """No answer within `seconds`, which were for the order or for `what`.

    `asleep` says whether it did nothing for so long.
    """

    def __init__(self, seconds: float, what: str = "", asleep: bool = False) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.what = what
        self.asleep = asleep


class Broken(CandidateError):
    """An answer that no honest runtime gives."""


BASELINE_SECONDS = 600.0
"""Limit of an order to one of the judge's own processes, which run trusted code."""


class BaselineOutOfMemory(JudgeError):
    """A process of the judge lacked memory, which others may hold."""


class OwnProcessKilled(JudgeError):
    """A process of the judge was killed from outside; trying again helps."""


class as_judge_error:
    """Raises errors of a process that runs no submission as `JudgeError`.

    Not a generator: since Python 3.12 one that raises another error leaves the first, and the
    tensors in its frames, in a cycle until the next collection.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CandidateError):
            lacked = isinstance(error, Failed) and error.failure.kind == "out_of_memory"
            text = f"a process of the judge's own failed: {type(error).__name__}: {error}"
            killed = isinstance(error, Ended) and error.killed_from_outside
            raise (BaselineOutOfMemory if lacked else OwnProcessKilled if killed else JudgeError)(
                text
            ) from error
