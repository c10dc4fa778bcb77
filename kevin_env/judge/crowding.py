"""Whether a submission lacks device memory because other processes hold it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from kevin_env.judge.api import JudgeError
from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.job import Stopwatch
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.workers.errors import CandidateError, Failed
from kevin_env.judge.workers.worker import asleep

FAIR = 3
"""A submission is blamed only if it could have had this multiple of its outputs and weights.

It has to keep its last outputs until there are new ones, and may need as much for itself.
"""


class ShortOfMemory(JudgeError):
    """The submission ran out of memory while others held device memory that it needed."""


@contextmanager
def leased(
    run: SubmissionRun, watch: Stopwatch, alone: bool = False
) -> Iterator[Callable[..., None]]:
    """Holds the lease; the submission is stopped while it waits for it.

    Yields:
        A function that releases the lease for others, calls its argument, and takes it again.
    """
    lease = run.bench.lease
    with ExitStack() as held:

        def take(meanwhile: Callable[[], None] = lambda: None, wait: bool = True) -> None:
            with watch("queue"), asleep(run.worker, wait):
                held.close()
                meanwhile()
                held.enter_context(lease.exclusive() if alone else lease.shared())

        take(wait=False)
        with ended_on_failure(run), watch("load"):
            yield take


@contextmanager
def ended_on_failure(run: SubmissionRun) -> Iterator[None]:
    """Ends a submission that fails inside a lease, before others get the device.

    Stopping its process would not do: a kernel that hangs ends only with its process.

    Raises:
        ShortOfMemory: in place of a failure for lack of memory that others hold. Memory is queried
            while the submission still holds its own.
    """
    try:
        yield
    except CandidateError as error:
        lacked = isinstance(error, Failed) and error.failure.kind == "out_of_memory"
        short = lacked and lacks_fair_share(run)
        run.worker.close()
        if short:
            text = "the submission lacked device memory that others hold"
            raise ShortOfMemory(f"{text}: free it, or judge elsewhere") from error
        raise


def lacks_fair_share(run: SubmissionRun) -> bool:
    """Whether a submission can have less of the device than it needs. Hold the lease.

    What it holds counts as available to it, and so does what it has freed while the judge still
    maps it.
    """
    if run.bench.device.type == "cpu":
        return False
    own = max(run.bench.candidates.held(run.worker), run.handshake.mapped_bytes)
    weights = sum(tensor.nbytes for tensor in run.case.model.state_dict().values())
    fair = CONTEXT + FAIR * (run.handshake.answer_bytes + weights)
    return torch.cuda.mem_get_info(run.bench.device)[0] + own < fair
