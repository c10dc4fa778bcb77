"""One judgement: the request, the time it takes and may take, and whether it has been cancelled."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from kevin_env.judge.api import (
    CALL_SECONDS,
    JudgeError,
    Limits,
    OnStage,
    Options,
    Sandbox,
    Seconds,
    Stage,
    Submission,
)
from kevin_env.judge.workers.errors import TimedOut
from kevin_env.judge.workers.usage import SLEEPING
from kevin_env.judge.workers.worker import Patience, Worker
from kevin_env.problem import Problem

T = TypeVar("T")

ALL_CALLS = 10
"""All orders together, except building, may take this multiple of what a first call may take."""
ASLEEP = SLEEPING * CALL_SECONDS["cpu"]
"""Seconds on a CPU after which a submission that does nothing is ended, if no call may take longer.
"""


class Stopwatch:
    """Wall time by stage. Stages may nest: time counts for the innermost one."""

    def __init__(self, on_stage: OnStage) -> None:
        self._on_stage = on_stage
        self._spent: dict[Stage, float] = {}
        self._stack: list[Stage] = []
        self._since = time.monotonic()

    @contextmanager
    def __call__(self, stage: Stage) -> Iterator[None]:
        """Measures what happens inside as `stage`."""
        self._book()
        self._stack.append(stage)
        self._on_stage(stage)
        try:
            yield
        finally:
            self._book()
            self._stack.pop()

    def seconds(self) -> Seconds:
        """What was measured so far."""
        return Seconds(**self._spent)

    def _book(self) -> None:
        now = time.monotonic()
        if self._stack:
            stage = self._stack[-1]
            self._spent[stage] = self._spent.get(stage, 0.0) + now - self._since
        self._since = now


class Allowance:
    """The time for all orders to one submission together, except building.

    Args:
        on_gpu: Whether limits are of the device's time; on a CPU they are of processor time.
    """

    def __init__(self, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._spent = 0.0

    def spent_on(
        self, order: Callable[[Patience], T], worker: Worker, limits: Limits, first: bool,
        pause: Callable[[], None],
    ) -> T:  # fmt: skip
        """Gives an order with its limit: no longer than is left for all together.

        Args:
            order: Gives it, and returns the answer.
            worker: Whose time it takes.
            limits: Of one order.
            first: Whether it has the limit of a first call.
            pause: As of `Patience`.
        """
        whole, charged = ALL_CALLS * limits.first, worker.charged
        limit = limits.first if first else limits.call
        seconds = min(limit, max(0.0, whole - self._spent))
        asleep = max(limits.call, min(SLEEPING * limits.call, ASLEEP))
        usual = min(seconds, limits.call) if self._on_gpu else asleep
        try:
            return order(Patience(seconds, usual, pause))
        except TimedOut as late:
            if seconds == limit or late.seconds < seconds:
                raise
            raise TimedOut(whole, "all calls of ModelNew together") from None
        finally:
            self._spent += worker.charged - charged


class Cancelled(JudgeError):
    """The judgement was cancelled."""


class Cancellation:
    """Cancels a judgement from another thread: ends its candidate and prevents further steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._worker: Worker | None = None

    def cancel(self) -> None:
        """Cancels, from any thread, at any time, any number of times."""
        with self._lock:
            self._cancelled, worker = True, self._worker
        if worker is not None:
            worker.end("cancelled")

    def require_wanted(self) -> None:
        """To be called before anything that takes long.

        Raises:
            Cancelled: if the judgement was cancelled.
        """
        if self._cancelled:
            raise Cancelled("the judgement was cancelled")

    def ends(self, worker: Worker) -> None:
        """Sets the candidate to end; ends it at once if the judgement has been cancelled."""
        with self._lock:
            self._worker = worker
        if self._cancelled:
            worker.end("cancelled")


def other_inputs(seen: str) -> str:
    """The secret of other inputs, which follows from one whose inputs have been seen.

    A submission that ended itself to be judged again may have left its answers in a file.
    """
    return hashlib.sha256(f"{seen}/again".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Job:
    """What a client wants judged."""

    problem: Problem
    submission: Submission
    options: Options
    watch: Stopwatch
    cancellation: Cancellation

    def require_protection_by(self, sandbox: Sandbox) -> None:
        """To be called before a worker gets the submission.

        Raises:
            JudgeError: if a protection of the sandbox is required and missing.
        """
        missing = [name for name, level in sandbox.model_dump().items() if level == "missing"]
        if self.options.require_sandbox and missing:
            text = f"this machine's sandbox does not enforce {', '.join(missing)}"
            raise JudgeError(f"{text}; see kevin-env doctor")
