"""Submissions that are ready for a device: each has its context, and waits for the lane.

A kernel that one of them left behind would disturb the submission in the lane. What is timed there
shows that; then all that wait are ended, and begin again.
"""

import math
import threading
import time
from collections import deque
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
    """The places beside the lane of one device, taken in order of arrival. Thread-safe.

    Args:
        places: How many submissions may be ready at once.
        memory: Bytes of the device's memory for all of them; one that needs more is ready alone.
    """

    def __init__(self, places: int, memory: float = math.inf) -> None:
        self._places = places
        self._memory = memory
        self._workers = dict[Worker, int]()
        self._line = deque[object]()
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many are ready or about to be."""
        return len(self._workers)

    @contextmanager
    def place(self, worker: Worker, memory: int = 0) -> Iterator[None]:
        """Waits for a place and holds it inside; leave it in the lane.

        Args:
            worker: Whose place.
            memory: Bytes of the device's memory that it will have.

        Raises:
            Interrupted: on leaving, or in place of an error, if the worker has been ended.
        """
        turn = object()
        with self._changed:
            self._line.append(turn)
            try:
                self._changed.wait_for(lambda: self._line[0] is turn and self._has_room(memory))
                self._workers[worker] = memory
            finally:
                self._line.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                interrupted = worker not in self._workers
                self._workers.pop(worker, None)
                self._changed.notify_all()
            if interrupted:
                raise Interrupted

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Ends all that are ready, and keeps others from becoming so inside. Hold the lane."""
        with self._changed:
            self._closed = True
            ended, self._workers = self._workers, {}
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

    def _has_room(self, memory: int) -> bool:
        if self._closed or len(self._workers) >= self._places:
            return False
        return not self._workers or sum(self._workers.values()) + memory <= self._memory
