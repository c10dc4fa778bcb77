"""Threads that run the jobs of an evaluation, and how they stop, retry and keep to a rate."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kevin_env.judge.api import JudgeError

Job = Callable[[], None]
T = TypeVar("T")

RETRY_SECONDS = (1.0, 5.0)
"""Pauses before a failed judge is called again."""
_TICK_SECONDS = 0.2


class Stopped(Exception):
    """The run stops before the next turn; a later run continues the sample."""


class Workers:
    """A pool of threads with a priority queue. Jobs may add jobs.

    The threads are daemons, so a reply that takes minutes does not block exit.

    Args:
        count: number of threads.
    """

    def __init__(self, count: int) -> None:
        self.stopping = threading.Event()
        """No new turn may start."""
        self.abandoned = threading.Event()
        """Results of running turns are discarded."""
        self._jobs: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._running = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True).start()

    def put(self, job: Job, rank: int) -> None:
        """Adds a job. Lower ranks run first, equal ranks in the order of arrival."""
        with self._changed:
            heapq.heappush(self._jobs, (rank, next(self._numbers), job))
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Sleeps.

        Raises:
            Stopped: if the run stops meanwhile.
        """
        if self.stopping.wait(seconds):
            raise Stopped

    def retry(self, attempt: Callable[[], T]) -> T:
        """Calls the judge, and again after each of `RETRY_SECONDS` if it fails.

        Raises:
            Stopped: if the run stops meanwhile.
            JudgeError: if the last attempt fails.
        """
        for seconds in RETRY_SECONDS:
            try:
                return attempt()
            except JudgeError:
                self.pause(seconds)
        return attempt()

    def wait(self, on_interrupt: Job) -> None:
        """Waits until all jobs are done or, once stopped, until none is running.

        The first Ctrl-C stops the pool, the second abandons running jobs.

        Args:
            on_interrupt: called at the first Ctrl-C.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            BaseException: the first error of a job, which stops the others.
        """
        try:
            self._wait()
        except KeyboardInterrupt:
            self.stopping.set()
            on_interrupt()
            try:
                self._wait()
            finally:
                self.abandoned.set()
            raise
        finally:
            self.stopping.set()
        if self._error is not None:
            raise self._error

    def _wait(self) -> None:
        with self._changed:
            # An unbounded wait cannot be interrupted on every platform.
            while self._running or (self._jobs and not self.stopping.is_set()):
                self._changed.wait(_TICK_SECONDS)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except BaseException as error:  # the boundary of a thread: `wait` raises it
                self._error = self._error or error
                self.stopping.set()
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._jobs and not self.stopping.is_set():
                self._changed.wait(_TICK_SECONDS)
            if self.stopping.is_set():
                return None
            self._running += 1
            return heapq.heappop(self._jobs)[2]


class Pacer:
    """Spreads requests evenly over a minute.

    Args:
        per_minute: requests; None means no limit.
        workers: the pool whose threads wait.
    """

    def __init__(self, per_minute: float | None, workers: Workers) -> None:
        self._seconds = 60 / per_minute if per_minute else 0.0
        self._workers = workers
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Waits until the next request may be sent.

        Raises:
            Stopped: if the run stops meanwhile.
        """
        with self._lock:
            now = time.monotonic()
            at = max(now, self._next)
            self._next = at + self._seconds
        if at > now:
            self._workers.pause(at - now)
