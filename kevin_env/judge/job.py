"""One judgement under way: what was asked for, where its time goes, and whether somebody still
waits for it.
"""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kevin_env.judge.api import JudgeError, OnStage, Options, Seconds, Stage, Submission
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem


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


class Cancelled(JudgeError):
    """Nobody waits for the judgement any more."""


class Cancellation:
    """Ends a judgement from another thread: its candidate at once, and what would come after that
    does not begin.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._worker: Worker | None = None

    def cancel(self) -> None:
        """From any thread, at any time; twice is fine."""
        with self._lock:
            self._cancelled, worker = True, self._worker
        if worker is not None:
            worker.end("cancelled")

    def require_wanted(self) -> None:
        """Called before anything that takes long begins.

        Raises:
            Cancelled: when it was cancelled.
        """
        if self._cancelled:
            raise Cancelled("the judgement was cancelled")

    def ends(self, worker: Worker) -> None:
        """From now on this candidate is the one that is ended; at once when it was cancelled
        before.
        """
        with self._lock:
            self._worker = worker
        if self._cancelled:
            worker.end("cancelled")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client wants judged."""

    problem: Problem
    submission: Submission
    options: Options
    watch: Stopwatch
    cancellation: Cancellation

    def on_other_inputs(self, seen: str) -> "Asked":
        """The same once more, on inputs that follow from the secret of those that were `seen`.

        Who ended itself to be judged again might have left their answers somewhere, in what of
        files lies in memory.
        """
        secret = hashlib.sha256(f"{seen}/again".encode()).hexdigest()[:32]
        return replace(self, options=self.options.model_copy(update={"secret": secret}))

    def require_protection_by(self, worker: Worker) -> None:
        """Called before the submission is given to it.

        Raises:
            JudgeError: when a protection is missing and may not be.
        """
        missing = [
            name for name, level in worker.sandbox.model_dump().items() if level == "missing"
        ]
        if self.options.require_sandbox and missing:
            text = f"this machine's sandbox gives no protection of {', '.join(missing)}; see kevin-env doctor"
            raise JudgeError(text)
