"""Threads that work off jobs, and what Ctrl-C does to them."""

import heapq
import itertools
import threading
from collections.abc import Callable

Job = Callable[[], None]

_TICK_SECONDS = 0.2


class Workers:
    """Runs jobs, which may put further ones, until none is left or somebody stops it.

    The threads are daemons: a reply that takes minutes does not keep the process from ending.

    Args:
        count: how many jobs at the same time.
    """

    def __init__(self, count: int) -> None:
        self.stopping = threading.Event()
        """Set when no new turn is to be begun."""
        self.abandoned = threading.Event()
        """Set when nobody waits any more: what still comes in is dropped."""
        self._jobs: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._running = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def put(self, job: Job, rank: int) -> None:
        """Adds a job, to be begun after those of lower rank, and after those of the same that came
        before.
        """
        with self._changed:
            heapq.heappush(self._jobs, (rank, next(self._numbers), job))
            self._changed.notify_all()

    def pause(self, seconds: float) -> bool:
        """Waits that long in a job; whether it may go on then."""
        return not self.stopping.wait(seconds)

    def wait(self, on_interrupt: Job) -> None:
        """Waits until no job is left, or, when it is stopped, until none is running.

        The first Ctrl-C stops it, the second abandons what is running.

        Args:
            on_interrupt: told of the first Ctrl-C.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            BaseException: what a job raised; it stops the others.
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
            # Waiting for ever could not be interrupted on every platform.
            while self._running or (self._jobs and not self.stopping.is_set()):
                self._changed.wait(_TICK_SECONDS)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except (
                BaseException
            ) as error:  # the boundary of a thread: it is raised where somebody waits
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
