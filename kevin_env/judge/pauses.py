"""A candidate that stands still, or does not, for as long as something lasts."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kevin_env.judge.worker import Trouble, Worker


@contextmanager
def awake(worker: Worker) -> Iterator[None]:
    """Lets a process run that stands still otherwise."""
    worker.freeze(False)
    try:
        yield
    finally:
        worker.freeze(True)


@contextmanager
def asleep(worker: Worker) -> Iterator[None]:
    """Stops every process of a candidate while something else is measured; one that is gone is noticed later."""
    with suppress(Trouble):
        worker.freeze(True)
    try:
        yield
    finally:
        with suppress(Trouble):
            worker.freeze(False)
