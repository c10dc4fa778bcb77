"""Logs what is waited for if it takes unusually long. Imports no torch."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

TELL_SECONDS = 30.0
"""A wait is logged after this time."""

_LOG = logging.getLogger(__name__)


@contextmanager
def waiting(what: str, details: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Logs a warning if what happens inside takes longer than `TELL_SECONDS`.

    Args:
        what: What is waited for.
        details: What is known about it when the line is logged, such as who holds a lock.
    """

    def tell() -> None:
        _LOG.warning("still waiting for %s after %.0f s%s", what, TELL_SECONDS, details())

    timer = threading.Timer(TELL_SECONDS, tell)
    timer.daemon = True
    with suppress(RuntimeError):  # no more threads on this machine
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
