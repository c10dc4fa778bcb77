"""The two baselines of every timed submission: the reference and the null model.

They run behind the same handshake as a submission, in processes that no submission touches, and
their failures are the judge's. An idle one is kept for the next submission to the same problem. It
drops its model and memory when the next one is lent, or when none has been in use for a while.
"""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.judge.api import JudgeError
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.errors import CandidateError, Ended, Failed
from kevin_env.judge.workers.worker import Worker


class Idle:
    """Calls back once nothing has been active for a while; thread-safe.

    Enter it around each activity.

    Args:
        seconds: How long nothing has to be active.
        then: Called in a separate thread; another activity may begin meanwhile. Its errors are
            ignored.
    """

    def __init__(self, seconds: float, then: Callable[[], object]) -> None:
        self._seconds = seconds
        self._then = then
        self.active = 0
        """How many activities there are now."""
        self._timer: threading.Timer | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.active += 1
            self._stop()

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self.active -= 1
            if self.active or self._closed:
                return
            self._timer = threading.Timer(self._seconds, self._due)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:  # this machine gives no more threads
                self._timer = None

    def close(self) -> None:
        """Prevents any further call."""
        with self._lock:
            self._closed = True
            self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        with self._lock:
            if self.active or self._closed:
                return
        self._then()


BASELINE_SECONDS = 600.0
IDLE_SECONDS = 10.0
"""Cached memory is freed after this time: up to 16 GB of a GPU that a policy may share."""


class BaselineOutOfMemory(JudgeError):
    """A process of the judge lacked memory, which others may hold."""


class OwnProcessKilled(JudgeError):
    """A process of the judge was killed from outside; trying again helps."""


class as_judge_error:
    """Raises errors of a process that runs no submission as `JudgeError`.

    Not a generator: since Python 3.12 one that raises another error leaves the first, and the
    tensors in its frames, in a cycle until the next collection.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CandidateError):
            lacked = isinstance(error, Failed) and error.failure.kind == "out_of_memory"
            text = f"a process of the judge's own failed: {type(error).__name__}: {error}"
            killed = isinstance(error, Ended) and error.killed_from_outside
            raise (BaselineOutOfMemory if lacked else OwnProcessKilled if killed else JudgeError)(
                text
            ) from error


@dataclass
class Baseline:
    """A process that runs trusted code, lent for one measurement.

    Attributes:
        worker: The process.
        loaded: Whether it has already loaded the code.
        fresh: Whether it has loaded nothing yet.
    """

    worker: Worker
    loaded: bool = False
    fresh: bool = False

    def load(self, code: str, entry: str) -> None:
        """Loads this code in place of any other. Hold the shared lease.

        Raises:
            JudgeError: if that fails.
        """
        if self.loaded:
            return
        with as_judge_error():
            if not self.fresh:
                self.worker.ask("forget", BASELINE_SECONDS)
            path = self.worker.folder / f"{secrets.token_hex(8)}.py"
            self.worker.ask("load", BASELINE_SECONDS, path=str(path), code=code, entry=entry)
        self.loaded = True


class Baselines:
    """Processes that run trusted code; thread-safe.

    Args:
        start: Returns a warm candidate.
        most: How many to keep, not counting those in use.
        lease: Of the device.
    """

    def __init__(self, start: Callable[[], Worker], most: int, lease: Lease) -> None:
        self._start = start
        self._most = most
        self._lease = lease
        self._idle = Idle(IDLE_SECONDS, self.rest)
        self._free: list[tuple[str, Worker]] = []
        self._used: set[Worker] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._resting = threading.Lock()
        """Held while free processes drop what they hold; meanwhile they are not in `_free`."""

    @contextmanager
    def lent(self, key: str) -> Iterator[Baseline]:
        """Lends a process for one measurement. Hold no lease: a new process makes a context.

        Prefers a free one that has loaded the code that the key stands for, then a new one, or the
        one least recently used if there are too many. After an error of the judge it is ended.

        Raises:
            JudgeError: if it does not start.
        """
        with self._idle:
            baseline = self._taken(key) or Baseline(self._start(), fresh=True)
            sound = True
            try:
                yield baseline
            except (JudgeError, torch.OutOfMemoryError):  # what it holds is what the judge lacks
                sound = False
                raise
            finally:
                name = key if baseline.loaded else ""
                self._keep(name, baseline.worker, used=True) if sound else baseline.worker.close()

    def rest(self) -> None:
        """Makes used processes that are free drop what they hold. Hold no lease."""
        with self._lease.shared():
            self.rest_now()

    def end_free(self) -> None:
        """Ends the free ones: each holds a context."""
        with self._resting, self._lock:
            free, self._free = self._free, []
            self._used.clear()
        for _, worker in free:
            worker.close()

    def close(self) -> None:
        """Ends the free ones now, and the others when they are returned."""
        self._idle.close()
        self._closed = True
        self.end_free()

    def _taken(self, key: str) -> Baseline | None:
        """A free one; None if one has to be started."""
        with self._resting, self._lock:
            # ended by something outside
            dead = [each for each in self._free if not each[1].waiting]
            self._free = [each for each in self._free if each not in dead]
            place = next((place for place, (name, _) in enumerate(self._free) if name == key), None)
            if place is None and self._free and self._idle.active + len(self._free) > self._most:
                place = 0
            name, worker = (key, None) if place is None else self._free.pop(place)
        for _, ended in dead:
            ended.close()
        return None if worker is None else Baseline(worker, loaded=name == key)

    def _keep(self, key: str, worker: Worker, used: bool) -> None:
        with self._lock:
            if not self._closed:
                self._free.append((key, worker))
                self._used |= {worker} if used else set()
                return
        worker.close()

    def rest_now(self) -> None:
        """As `rest`; hold the shared lease."""
        with self._resting:
            with self._lock:
                used = [each for each in self._free if each[1] in self._used]
                self._free = [each for each in self._free if each[1] not in self._used]
                self._used.clear()
            for key, worker in used:
                try:
                    worker.ask("rest", BASELINE_SECONDS)
                except CandidateError:  # the next measurement gets another
                    worker.close()
                else:
                    self._keep(key, worker, used=False)
