"""A candidate that stands still, runs or ends, for as long as something lasts or because of it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import Worker


@contextmanager
def awake(worker: Worker) -> Iterator[None]:
    """Lets a process run that stands still otherwise; `Worker.settle` waits until it does either."""
    worker.freeze(False, wait=False)
    try:
        yield
    finally:
        worker.freeze(True, wait=False)


@contextmanager
def asleep(worker: Worker, wait: bool = True) -> Iterator[None]:
    """Stops every process of a candidate while something else is done; one that is gone is noticed
    later.

    Args:
        worker: The candidate.
        wait: Until it stands still, before others are given what it has used.
    """
    with suppress(CandidateError):
        worker.freeze(True, wait)
    try:
        yield
    finally:
        worker.freeze(False, wait=False)


@contextmanager
def ended_on_error(worker: Worker) -> Iterator[None]:
    """Ends a candidate that fails inside; held inside a lease, it ends before others get the
    device.

    Stopping its process would not do: a kernel of it that hangs ends with the process alone.
    """
    try:
        yield
    except CandidateError:
        worker.close()
        raise
