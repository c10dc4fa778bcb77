"""Submissions that are ready for a device: each has its context, and waits for the lane.

A kernel that one of them left behind would disturb the submission in the lane. What is timed there
shows that; then all that wait are ended, and begin again.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kevin_env.judge.workers.worker import Worker

END_SECONDS = 10.0
"""For the ends of contexts, of which the driver handles one at a time."""
LOOK = 0.005
"""Seconds between two looks at the processes that are ending."""


class Interrupted(Exception):
    """A submission that waited was ended for another one, and has to begin again."""


class Ready:
    """The places beside the lane of one device. Thread-safe.

    Args:
        places: How many submissions may be ready at once.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._workers = set[Worker]()
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many are ready or about to be."""
        return len(self._workers)

    @contextmanager
    def place(self, worker: Worker) -> Iterator[None]:
        """Waits for a place and holds it inside; leave it in the lane.

        Raises:
            Interrupted: on leaving, or in place of an error, if the worker has been ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._workers) < self._places and not self._closed)
            self._workers.add(worker)
        try:
            yield
        finally:
            with self._changed:
                interrupted = worker not in self._workers
                self._workers.discard(worker)
                self._changed.notify_all()
            if interrupted:
                raise Interrupted

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Ends all that are ready, and keeps others from becoming so inside. Hold the lane."""
        with self._changed:
            self._closed = True
            ended, self._workers = self._workers, set()
        for worker in ended:
            worker.end("the device, which another submission needs for itself")
        end = time.monotonic() + END_SECONDS
        while any(Path(f"/proc/{each.pid}").exists() for each in ended) and time.monotonic() < end:
            time.sleep(LOOK)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
