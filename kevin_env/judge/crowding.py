"""Whether a submission lacks device memory because other processes hold it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from kevin_env.judge.bench import Bench
from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.job import Stopwatch
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.workers.errors import Failed
from kevin_env.judge.workers.worker import Worker, asleep, ended_on_error

PATIENCE = 10.0
"""Seconds to wait for others to free memory. With five judges on one H200, whose submissions come
and go within two seconds, one of a hundred judged alone found most of the memory taken.
"""
LOOK = 1.0
"""Seconds between two queries of the driver."""
FAIR = 3
"""A submission is blamed only if it could have had this multiple of its outputs and weights.

It has to keep its last outputs until there are new ones, and may need as much for itself.
"""


class ShortOfMemory(Failed):
    """The submission ran out of memory while others held device memory that it needed."""


def stays_crowded(bench: Bench, worker: Worker) -> bool:
    """Whether a device stays crowded next to a candidate judged alone, for `PATIENCE` seconds.

    Idle baselines of this judge free what they keep. Call without holding the lease.
    """
    if not bench.crowded(worker):
        return False
    bench.baselines.rest()
    end = time.monotonic() + PATIENCE
    while bench.crowded(worker):
        if time.monotonic() > end:
            return True
        time.sleep(LOOK)
    return False


def is_crowded(bench: Bench, worker: Worker) -> bool:
    """Whether a device is crowded, queried while nothing is timed. Call without the lease."""
    with bench.lease.shared():
        return bench.crowded(worker)


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
    """As `ended_on_error`; memory is queried first, while the submission still holds its own.

    Raises:
        ShortOfMemory: in place of a failure for lack of memory that others hold.
    """
    with ended_on_error(run.worker):
        try:
            yield
        except Failed as failed:
            if failed.failure.kind == "out_of_memory" and lacks_fair_share(run):
                raise ShortOfMemory(failed.failure) from failed
            raise


def lacks_fair_share(run: SubmissionRun) -> bool:
    """Whether a submission can have less of the device than it needs. Hold the lease.

    What it holds counts as available to it, and so does what it has freed while the judge still
    maps it.
    """
    if run.bench.device.type == "cpu":
        return False
    own = max(run.bench.candidates.held(run.worker), run.mapped_bytes)
    weights = sum(tensor.nbytes for tensor in run.case.model.state_dict().values())
    fair = CONTEXT + FAIR * (run.handshake.answer_bytes + weights)
    return torch.cuda.mem_get_info(run.bench.device)[0] + own < fair
