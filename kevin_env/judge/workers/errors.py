"""What may come of an order besides an answer."""

from typing import Any

from pydantic import Field, ValidationError

from kevin_env.outcome import Frozen


class Failure(Frozen):
    """What a candidate says of an exception in the submission. All of it is claimed."""

    kind: str = Field(max_length=40)
    type: str = Field(max_length=200)
    message: str = Field(max_length=10_000)
    frames: list[tuple[int, str, str]] = Field(max_length=50)
    output: str = Field(max_length=200_000)

    @classmethod
    def read(cls, claim: Any) -> "Failure":
        """From what came over the wire.

        Raises:
            Broken: when it is malformed.
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
    """The process is gone: `code` as in subprocess (negative for a signal), or `limit`, which it
    broke.
    """

    def __init__(self, code: int | None = None, limit: str | None = None) -> None:
        super().__init__(f"ended with {code}" if limit is None else limit)
        self.code = code
        self.limit = limit


class TimedOut(CandidateError):
    """No answer within the time allowed, `seconds`: for the order, or for what is named."""

    def __init__(self, seconds: float, what: str = "") -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.what = what


class Broken(CandidateError):
    """An answer that no honest runtime gives."""
