"""The client's side of judging: starts judge processes and sends requests. Imports no torch."""

import logging
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kevin_env.judge.api import (
    DeviceInfo,
    JudgeError,
    OnStage,
    Options,
    Pace,
    Stage,
    devices_here,
)
from kevin_env.judge.protocol import Request, value_of
from kevin_env.judge.sandbox.readable import check_named
from kevin_env.judge.workers.usage import CpuUse, GpuUse
from kevin_env.lint.report import Limits, LintReport
from kevin_env.pools.base import RequestPool
from kevin_env.pools.remote import JudgeGone, NoJudge, Remote
from kevin_env.problem import Problem

LINTER = ("-m", "kevin_env.lint.server")
"""What Python runs as the lint process of a device."""
TRIES = 4
"""Judges that a request is sent to before it fails; each loss may be due to another request."""
LOOK = 0.2
"""Seconds between two looks at how long the first calls of a linted problem have run."""

_LOG = logging.getLogger(__name__)


class LocalPool(RequestPool):
    """Judges on the devices of this machine, each started when it is first needed.

    If a choice names several devices, as `cuda:0,1`, they have to be alike. A submission goes to
    the one with the fewest requests, and among those to one that knows its problem. A device whose
    judge does not start is logged once and tried again later, while the others do its work. A judge
    that ends or stops answering is replaced, and its requests are sent again.

    Safe to use from many threads. Close it, or use it as a context manager; it also closes when it
    is collected and when the interpreter exits. In a forked child it starts judges of its own, and
    so does its pickled copy in another process, such as one that `multiprocessing` spawns.

    Args:
        pace: How many calls a verdict takes; by default the entry of `PACES` for each device.
        memory: Bytes of host memory that each judge plans with; by default what is free. It limits
            how many submissions are judged at once, and how much each may use.
        readable: Files and folders that submissions may read besides the system, Python and its
            packages; by default those that `KEVIN_ENV_READABLE` names, separated by colons.
        start: Starts the judge of a device.

    Raises:
        ValueError: if `readable` names what does not exist.
    """

    def __init__(
        self,
        *,
        pace: Pace | None = None,
        memory: int | None = None,
        readable: str | Sequence[str] | None = None,
        start: Callable[..., Remote] = Remote,
    ) -> None:
        super().__init__()
        self._pace, self._memory, self._readable = pace, memory, check_named(readable)
        self._start = start
        self._kinds: dict[tuple[str, ...], tuple[str, str]] = {}
        """By the devices of a choice: one of them that was used, and its kind."""
        self._reported: set[str] = set()
        """Devices that do not start and have been logged."""
        self._open()

    def lint(
        self, problem: Problem, options: Options, limits: Limits | None = None
    ) -> Future[LintReport]:
        """Whether the problem is fit for training on a device. A failing reference is a finding.

        One at a time per device, in a process of its own; of several devices the first counts.

        Raises (from the future):
            JudgeError: if the judge fails or the device does not exist.
        """
        limits = limits or Limits()
        return self._request("lint", problem, options, limits=limits.model_dump())

    def device(self, name: str = "auto") -> DeviceInfo:
        """What the judge knows about a device; of the first that starts if `name` means several.

        Raises:
            JudgeError: if none starts.
        """
        *others, last = devices_here(name)
        for each in others:
            with suppress(JudgeError):
                return self._judge(each).info
        return self._judge(last).info

    def close(self) -> None:
        """Ends every process of the pool, for good; may be called twice."""
        self._close()

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"pace": self._pace, "memory": self._memory, "readable": self._readable}
        return partial(LocalPool, **options, start=self._start), ()

    def _open(self) -> None:
        self._balance = Balance()
        self._reporting = threading.Lock()
        start = partial(self._start, pace=self._pace, memory=self._memory, readable=self._readable)
        self._judges = _Judges(start)
        self._linting = defaultdict[str, threading.Lock](threading.Lock)
        self._close = weakref.finalize(self, self._judges.close)

    def _after_fork(self) -> None:
        super()._after_fork()
        parents = self._judges
        self._close.detach()
        self._open()
        self._judges.closed = parents.closed
        parents.abandon()

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        if request["do"] == "lint":
            self._settle_later(future, lambda: self._lint(request, future))
        else:
            self._settle_later(future, lambda: self._value(request, future, on_stage))

    def _value(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> Any:
        """The answer of one judge; if that goes away, of another, which handles it alone."""
        gone: JudgeError | None = None
        for tried in range(TRIES):
            try:
                name, judge = self._choose(request)
            except NoJudge:
                raise
            except JudgeGone as error:  # while it was starting
                gone = error
                continue
            attempt = judge.ask({**request, "alone": tried > 0}, on_stage)
            future.add_done_callback(partial(_cancel_too, judge, request["id"]))
            failed = False
            try:
                return value_of(attempt.result())
            except JudgeError as error:
                failed, gone = not future.cancelled(), error
                if not failed or not isinstance(error, JudgeGone):
                    raise
            finally:
                self._balance.done(name, failed)
        hint = "if other problems are judged, this one's reference may end the process"
        raise JudgeError(f"{TRIES} judges died while judging this: {gone}; {hint}")

    def _lint(self, request: Request, future: Future[Any]) -> LintReport:
        """The report of a lint process, which is ended if a problem's first calls take too long."""
        name, problem = devices_here(request["options"]["device"])[0], request["problem"]["id"]
        limits = Limits.model_validate(request["limits"])
        with self._linting[name]:
            linter = self._judges.of(name, LINTER)
            _ = linter.info
            stages: list[Stage] = []
            attempt = linter.ask({**request, "alone": True}, stages.append)
            future.add_done_callback(partial(_cancel_too, linter, request["id"]))
            use = (CpuUse if name == "cpu" else GpuUse)(linter.pid)
            left, looked = limits.first_seconds, time.monotonic()
            while "verify" not in stages and not wait([attempt], LOOK).done:
                elapsed, looked = time.monotonic() - looked, time.monotonic()
                used, _ = use.since(elapsed)
                left -= used if "load" in stages else 0.0
                if left <= 0:
                    linter.kill()
                    return LintReport.too_slow(problem, name, limits)
            return value_of(attempt.result())

    def _choose(self, request: Request) -> tuple[str, Remote]:
        """A device and its judge; preferably one that has not failed lately."""
        names = devices_here(request["options"]["device"])
        left = list(names)
        while True:
            name = self._balance.take(left, request["problem"]["source"])
            try:
                judge = self._judge(name)
                self._require_alike(names, name, judge.info.name)
                return name, judge
            except NoJudge as error:
                self._balance.done(name, failed=True)
                left.remove(name)
                if not left:
                    raise
                self._report(name, error)
            except BaseException:
                self._balance.done(name)
                raise

    def _require_alike(self, names: tuple[str, ...], name: str, kind: str) -> None:
        other, known = self._kinds.setdefault(names, (name, kind))
        if kind != known:
            raise JudgeError(f"{other} is {known}, {name} is {kind}: choose devices of one kind")

    def _report(self, name: str, error: JudgeError) -> None:
        with self._reporting:
            new = name not in self._reported
            self._reported.add(name)
        if new:
            _LOG.warning("%s is left out while it has no judge: %s", name, error)

    def _judge(self, name: str) -> Remote:
        """The judge of one device, once it is ready."""
        judge = self._judges.of(name)
        _ = judge.info
        self._reported.discard(name)
        return judge


@dataclass
class _Place:
    """The place of a device's judge; its lock is held while one is started or replaced."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    judge: Remote | None = None


class _Judges:
    """The judges of one process, by device and program. Thread-safe.

    Args:
        start: Starts the judge of a device; with `program`, one that runs another program.

    Attributes:
        closed: Whether no more are started.
    """

    def __init__(self, start: Callable[..., Remote]) -> None:
        self.closed = False
        self._start = start
        self._places: dict[tuple[str, Sequence[str]], _Place] = {}

    def of(self, name: str, program: Sequence[str] = ()) -> Remote:
        """The judge of a device, which may be starting; a new one if there is none alive."""
        place = self._places.setdefault((name, program), _Place())
        with place.lock:
            if self.closed:
                raise JudgeError("the pool is closed")
            if place.judge is None or not place.judge.alive:
                if place.judge is not None:
                    place.judge.close()
                place.judge = self._start(name, **({"program": program} if program else {}))
            return place.judge

    def close(self) -> None:
        """Ends all of them."""
        self.closed = True
        judges = list[Remote]()
        for place in list(self._places.values()):
            with place.lock:
                judges += [place.judge] if place.judge else []
        for judge in judges:
            judge.hang_up()
        for judge in judges:
            judge.close()

    def abandon(self) -> None:
        """In a forked child: leaves them to the parent, whose threads may hold the locks."""
        for place in self._places.values():
            if place.judge is not None:
                place.judge.abandon()


def _cancel_too(judge: Remote, number: str, future: Future[Any]) -> None:
    if future.cancelled():
        judge.cancel(number)


REST = 60.0
"""Seconds for which a device gets no requests after its judge failed, if there is another device.
"""


class Balance:
    """Distributes requests over devices. Safe to use from many threads.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, float] = {}
        self._under_way: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def take(self, names: Sequence[str], problem: str) -> str:
        """The device with the fewest requests; call `done` afterwards.

        Among equals, one that knows the problem. One that fails answers quickly and would have the
        fewest requests, so it rests for a while.
        """
        with self._lock:
            now = self._clock()
            ranks = {
                each: (
                    now < self._rests.get(each, now),
                    self._under_way[each],
                    (each, problem) not in self._known,
                )
                for each in names
            }
            name = min(names, key=ranks.__getitem__)
            self._under_way[name] += 1
            self._known.add((name, problem))
            return name

    def done(self, name: str, failed: bool = False) -> None:
        """Ends a request; `failed` if the judge failed, not the submission."""
        with self._lock:
            self._under_way[name] -= 1
            if failed:
                self._rests[name] = self._clock() + REST
