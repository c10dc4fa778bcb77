"""A time after which code in this thread is given up: a reference may loop in Python for hours."""

import ctypes
import threading
from typing import Any


class TooSlow(BaseException):
    """The time is over. No `Exception`, since what a problem raises is told as its own failure."""


class Deadline:
    """Raises `TooSlow` in the thread that is inside, once the time is over and as soon as Python runs there.

    Args:
        seconds: The time; a single call into torch is not cut short.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._thread: int | None = None

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._timer.start()

    def __exit__(self, *error: Any) -> None:
        self._timer.cancel()
        with self._lock:
            self._thread = None

    def _end(self) -> None:
        with self._lock:
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TooSlow))
