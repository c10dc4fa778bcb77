"""A time after which code in this thread is given up: a reference may loop in Python for hours."""

import ctypes
import threading
from typing import Any

AGAIN = 1.0
"""Seconds after which it is raised again."""


class TooSlow(BaseException):
    """The time is over. No `Exception`, since what a problem raises is told as its own failure."""


class Deadline:
    """Raises `TooSlow` in the thread that is inside, once the time is over and as soon as Python
    runs there.

    Again every second for as long as it stays inside: a bare `except` may have taken the first one.
    Inside, the thread must not wait for a lock that others hold: it would get it and the error in
    one, and keep it.

    Args:
        seconds: The time; a single call into torch is not cut short.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, args=(threading.get_ident(),), daemon=True).start()

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._left.set()

    def _watch(self, thread: int) -> None:
        seconds = self._seconds
        while not self._left.wait(seconds):
            with self._lock:
                if not self._left.is_set():
                    raised = ctypes.py_object(TooSlow)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
            seconds = AGAIN
