"""Threads that run the jobs of an evaluation, and how they stop, retry and keep to a rate."""

import itertools
import queue
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

    The threads are daemons, so a reply that takes minutes does not block exit; those of a
    `ThreadPoolExecutor` would.

    Args:
        count: number of threads.
    """

    def __init__(self, count: int) -> None:
        self.stopping = threading.Event()
        """No new turn may start."""
        self.abandoned = threading.Event()
        """Results of running turns are discarded."""
        self._count = count
        self._jobs: queue.PriorityQueue[tuple[float, int, Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._error: BaseException | None = None
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True).start()

    def put(self, job: Job | None, rank: float) -> None:
        """Adds a job; None ends a thread. Low ranks are first, equal ones in order of arrival."""
        self._jobs.put((rank, next(self._numbers), job))

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
            self._join()
        except KeyboardInterrupt:
            self.stopping.set()
            on_interrupt()
            try:
                self._join()
            finally:
                self.abandoned.set()
            raise
        finally:
            self.stopping.set()
            for _ in range(self._count):
                self.put(None, float("inf"))
        if self._error is not None:
            raise self._error

    def _join(self) -> None:
        """As `Queue.join`, which a second Ctrl-C may leave with its lock released twice."""
        with self._jobs.all_tasks_done:
            while self._jobs.unfinished_tasks:
                self._jobs.all_tasks_done.wait(_TICK_SECONDS)

    def _work(self) -> None:
        while (job := self._jobs.get()[2]) is not None:
            try:
                if not self.stopping.is_set():
                    job()
            except BaseException as error:  # the boundary of a thread: `wait` raises it
                self._error = self._error or error
                self.stopping.set()
            finally:
                self._jobs.task_done()


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
