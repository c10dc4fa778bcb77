"""How the failure of a submission's process becomes its verdict: in one place."""

from collections.abc import Iterator
from contextlib import contextmanager

from kevin_env.judge.api import JudgeError
from kevin_env.judge.verdict import Place, verdict
from kevin_env.judge.workers.errors import Broken, CandidateError
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Outcome

GONE_SECONDS = 0.2
"""Within which the end of a process is noticed whose memory is gone."""


class Rejected(Exception):
    """The submission failed.

    Args:
        outcome: How.
        killed: Whether its process was killed by something that is not the judge.
    """

    def __init__(self, outcome: Outcome, killed: bool = False) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
        self.killed = killed


class NoContext(JudgeError):
    """A submission that was built got no CUDA context."""


class Unplayed(Exception):
    """A submission is to be judged in a process of its own, since its recording failed."""


@contextmanager
def asked(worker: Worker, place: Place) -> Iterator[None]:
    """Inside, a submission has been asked for something. Ends it if it fails.

    It ends before others get the device: a kernel that hangs ends only with its process.

    Args:
        worker: Its process.
        place: What it was asked for.

    Raises:
        Rejected: in place of a `CandidateError`.
    """
    try:
        yield
    except CandidateError as error:
        if isinstance(error, Broken):  # memory of a process that was killed cannot be read
            error = worker.end_within(GONE_SECONDS) or error
        line, access = worker.faults.line(), worker.faults.access
        outcome = verdict(error, place, str(worker.folder), line, access)
        shot = worker.shot
        worker.close()
        raise Rejected(outcome, shot) from error
