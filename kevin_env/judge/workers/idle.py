"""What is done once nothing has been under way for a while."""

import threading
from collections.abc import Callable
from typing import Any


class Idle:
    """Entered round whatever is under way, by any number of threads at once.

    Args:
        seconds: For which nothing has to be under way.
        then: Called then, in a thread of its own; something may begin meanwhile. What it raises is
            nobody's concern.
    """

    def __init__(self, seconds: float, then: Callable[[], object]) -> None:
        self._seconds = seconds
        self._then = then
        self._under_way = 0
        self._timer: threading.Timer | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._under_way += 1
            self._stop()

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._under_way -= 1
            if self._under_way or self._closed:
                return
            self._timer = threading.Timer(self._seconds, self._due)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:  # this machine gives no more threads
                self._timer = None

    def close(self) -> None:
        """Nothing is called from now on."""
        with self._lock:
            self._closed = True
            self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        with self._lock:
            if self._under_way or self._closed:
                return
        self._then()
