"""Where the time of one judgement goes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kevin_env.judge.api import OnStage, Seconds, Stage


class Stopwatch:
    """Wall time by stage. Stages may nest: time goes to the innermost one."""

    def __init__(self, on_stage: OnStage) -> None:
        self._on_stage = on_stage
        self._spent: dict[Stage, float] = {}
        self._stack: list[Stage] = []
        self._since = time.monotonic()

    @contextmanager
    def __call__(self, stage: Stage) -> Iterator[None]:
        """Books what happens inside under `stage`."""
        self._book()
        self._stack.append(stage)
        self._on_stage(stage)
        try:
            yield
        finally:
            self._book()
            self._stack.pop()

    @contextmanager
    def waiting_for(self, places: threading.Semaphore) -> Iterator[None]:
        """Holds one of some places; until there is one, time is booked under `queue`."""
        with self("queue"):
            places.acquire()
        try:
            yield
        finally:
            places.release()

    def seconds(self) -> Seconds:
        """What was booked so far."""
        return Seconds(**self._spent)

    def _book(self) -> None:
        now = time.monotonic()
        if self._stack:
            stage = self._stack[-1]
            self._spent[stage] = self._spent.get(stage, 0.0) + now - self._since
        self._since = now
