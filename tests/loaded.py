"""Submissions that were loaded into real candidates: what the fixture `submit` gives."""

from collections.abc import Callable
from dataclasses import dataclass

from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import Worker

MEMORY = 4 << 30
SECONDS = 20.0


@dataclass
class Ran:
    """A submission that was loaded into a candidate.

    Attributes:
        worker: The candidate, still there.
        end: What became of loading; None when it went well.
        seconds: How long that took.
    """

    worker: Worker
    end: CandidateError | None = None
    seconds: float = 0.0
    log: str = ""

    def closed(self) -> "Ran":
        """Ends the candidate; `log` is whole then."""
        self.worker.close()
        self.log = self.worker.log
        return self


Submit = Callable[..., Ran]
