"""Logs what is waited for if it takes unusually long. Imports no torch."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

TELL_SECONDS = 30.0
"""A wait is logged after this time."""
AGAIN_SECONDS = 300.0
"""Least time between two lines about the same thing."""

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class _Wait:
    what: str
    details: Callable[[], str]
    since: float = field(default_factory=time.monotonic)
    thread: threading.Thread = field(default_factory=threading.current_thread)


_waits: dict[_Wait, None] = {}
_told: dict[str, float] = {}
"""When each thing was last logged."""
_watchers: dict[int, threading.Thread] = {}
"""By process, as a forked child inherits this table but not the thread."""


@contextmanager
def waiting(what: str, details: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Logs a warning if what happens inside takes longer than `TELL_SECONDS`, and again later.

    Args:
        what: What is waited for.
        details: What is known about it when the line is logged, such as who holds a lock.
    """
    wait = _Wait(what, details)
    _waits[wait] = None
    if os.getpid() not in _watchers:
        _start_watcher()
    try:
        yield
    finally:
        del _waits[wait]


def _start_watcher() -> None:
    watcher = threading.Thread(target=_watch, daemon=True)
    if _watchers.setdefault(os.getpid(), watcher) is watcher:
        try:
            watcher.start()
        except RuntimeError:  # no more threads on this machine; the next wait tries again
            del _watchers[os.getpid()]


def _watch() -> None:
    while True:
        now = time.monotonic()
        due = [_look(wait, now) for wait in list(_waits) if wait.thread.is_alive()]
        time.sleep(max(0.0, min([*due, now + TELL_SECONDS]) - now))


def _look(wait: _Wait, now: float) -> float:
    """Logs a wait if it is due. Returns when it is due next."""
    due = max(wait.since + TELL_SECONDS, _told.get(wait.what, -AGAIN_SECONDS) + AGAIN_SECONDS)
    if now < due:
        return due
    _told[wait.what] = now
    _LOG.warning("still waiting for %s after %.0f s%s", wait.what, now - wait.since, wait.details())
    return now + AGAIN_SECONDS
