"""The client's side of judging: starts judge processes, hands them work, gives futures. Imports no
torch.
"""

import asyncio
import logging
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kevin_env.judge.api import (
    DeviceInfo,
    Facts,
    JudgeError,
    Judgement,
    OnStage,
    Options,
    Pace,
    Submission,
    device_names,
)
from kevin_env.judge.lint.report import Limits, LintReport
from kevin_env.judge.remote import JudgeGone, Remote, fail, wanted
from kevin_env.problem import Problem

TRIES = 4
"""How many judges may go away while they have a request, until it fails. Others that they have may
be the cause.
"""


_LOG = logging.getLogger(__name__)


class LocalPool:
    """Judges on the devices of this machine, each started when it is first needed.

    Where a choice of devices has several, as `cuda:0,1`, a submission goes to the one with the
    least under way, and of those rather to one that knows its problem. They have to be alike. A
    device whose judge does not start is logged once and tried again later, while the others do its
    work. A judge that ends or stops answering is replaced, and what it had is judged again.

    Safe to use from many threads. Close it, or use it as a context manager; it also closes when it
    is collected and when the interpreter exits. In a forked child it starts judges of the child's
    own.

    Args:
        pace: How many calls a verdict takes; by default what `PACES` has for each kind of device.
        start: Starts the judge of a device.
    """

    def __init__(
        self, pace: Pace | None = None, start: Callable[[str, Pace | None], Remote] = Remote
    ) -> None:
        self._pace = pace
        self._start = start
        self._judges: dict[str, Remote] = {}
        self._facts: dict[tuple[str, str, str, str], Future[Facts]] = {}
        self._kinds: dict[tuple[str, ...], tuple[str, str]] = {}
        """By the devices of a choice: one that was in use, and its kind."""
        self._reported: set[str] = set()
        """Devices that do not start, of which the log tells."""
        self._balance = Balance()
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._closed = threading.Event()
        self._close = weakref.finalize(self, _close_all, self._judges, self._owner, self._closed)

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        """See `JudgePool.submit`."""
        request = {"do": "judge", "submission": submission.model_dump()}
        return self._request(
            problem, options, request, lambda a: Judgement.model_validate(a["judgement"]), on_stage
        )

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        """See `Describer.describe`. Asked once for a problem and choice of devices."""
        key = (problem.id, problem.sha256, options.device, options.inputs)
        with self._lock:
            known = self._facts.get(key)
        if known is None or (known.done() and known.exception() is not None):
            message = {"do": "describe"}
            known = self._request(
                problem, options, message, lambda a: Facts.model_validate(a["facts"]), None
            )
            with self._lock:
                self._facts[key] = known
        return known

    def lint(
        self, problem: Problem, options: Options, limits: Limits | None = None
    ) -> Future[LintReport]:
        """Whether the problem is fit to be trained on, on a device. A reference that fails is a
        finding.

        Raises (from the future):
            JudgeError: if the judge fails or the device is not there.
        """
        request = {"do": "lint", "limits": (limits or Limits()).model_dump()}
        return self._request(
            problem, options, request, lambda a: LintReport.model_validate(a["report"]), None
        )

    async def judge(self, problem: Problem, submission: Submission, options: Options) -> Judgement:
        """`submit` for code that runs in an event loop."""
        return await asyncio.wrap_future(self.submit(problem, submission, options))

    def device(self, name: str = "auto") -> DeviceInfo:
        """What the judge of a device knows of it; of the first that is there where `name` means
        several.

        Raises:
            JudgeError: when none is there.
        """
        *others, last = device_names(name)
        for each in others:
            with suppress(JudgeError):
                return self._judge(each).info
        return self._judge(last).info

    def close(self) -> None:
        """Ends every process of the pool, for good. Twice is fine."""
        self._close()

    def __deepcopy__(self, memo: object) -> "LocalPool":
        """Itself: Gymnasium copies an environment's keywords, and a pool is a handle on processes."""
        return self

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _request(
        self,
        problem: Problem,
        options: Options,
        message: dict[str, Any],
        read: Any,
        on_stage: OnStage | None,
    ) -> Future[Any]:
        whole = {**message, "problem": problem.model_dump(), "options": options.model_dump()}
        request = _Request(whole, problem.sha256, device_names(options.device), read, on_stage)
        if message["do"] == "describe":  # several may wait for it: none of them may cancel it
            request.future.set_running_or_notify_cancel()
        self._ask_later(request, lost=0)
        return request.future

    def _ask_later(self, request: "_Request", lost: int) -> None:
        """Asks in a thread of its own; `lost` is how many judges went away while they had the
        request.
        """

        def ask() -> None:
            try:
                self._ask(request, lost)
            except JudgeError as error:
                fail(request.future, error)
            except (
                Exception
            ) as error:  # the boundary round a request: nobody may wait for it for ever
                fail(
                    request.future,
                    JudgeError(f"the judge could not be asked: {type(error).__name__}: {error}"),
                )

        try:
            threading.Thread(target=ask, daemon=True).start()
        except RuntimeError as error:  # this machine gives no more threads
            fail(request.future, JudgeError(f"the judge could not be asked: {error}"))

    def _ask(self, request: "_Request", lost: int) -> None:
        """Asks one judge. If it goes away, another gets the request, alone: any that it had may
        have been the cause.
        """
        name, judge = self._choose(request)
        attempt: Future[Any] = Future()

        def settle(done: Future[Any]) -> None:
            error = None if done.cancelled() else done.exception()
            self._balance.done(name, failed=isinstance(error, JudgeError))
            if isinstance(error, JudgeGone) and lost + 1 < TRIES:
                self._ask_later(request, lost + 1)
            elif isinstance(error, JudgeGone):
                fail(
                    request.future,
                    JudgeError(f"{TRIES} judges went away while they had this: {error}"),
                )
            elif error is not None:
                fail(request.future, error)
            elif not done.cancelled() and wanted(request.future):
                request.future.set_result(done.result())

        attempt.add_done_callback(settle)
        request.future.add_done_callback(
            lambda done: attempt.cancel() if done.cancelled() else None
        )
        try:
            judge.ask(
                {**request.message, "alone": lost > 0}, attempt, request.read, request.on_stage
            )
        except JudgeError as error:
            fail(attempt, error)

    def _choose(self, request: "_Request") -> tuple[str, Remote]:
        """A device that has a judge, and that judge; where there are several, rather none that
        failed lately.
        """
        left = list(request.names)
        while True:
            name = self._balance.take(left, request.key)
            try:
                judge = self._judge(name)
                self._require_alike(request.names, name, judge.info.name)
                return name, judge
            except JudgeGone as error:
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
        with self._lock:
            new = name not in self._reported
            self._reported.add(name)
        if new:
            _LOG.warning("%s is left out while it has no judge: %s", name, error)

    def _judge(self, name: str) -> Remote:
        """The judge of one device, ready."""
        with self._lock:
            if self._closed.is_set():
                raise JudgeError("the pool is closed")
            if self._owner != os.getpid():  # a forked trainer: the judges are its parent's
                self._judges.clear()
                self._owner = os.getpid()
                self._close = weakref.finalize(
                    self, _close_all, self._judges, self._owner, self._closed
                )
            judge = self._judges.get(name)
            if judge is not None and not judge.alive:
                judge.close()
            if judge is None or not judge.alive:
                judge = self._judges[name] = self._start(name, self._pace)
        _ = judge.info
        self._reported.discard(name)
        return judge


@dataclass(frozen=True, eq=False)
class _Request:
    """What a judge is asked, until it is answered.

    Attributes:
        message: As it is sent.
        key: Of its problem.
        names: The devices that may answer it.
        read: Makes of an answer what `future` gets.
    """

    message: dict[str, Any]
    key: str
    names: tuple[str, ...]
    read: Any
    on_stage: OnStage | None
    future: Future[Any] = field(default_factory=Future[Any])


def _close_all(judges: dict[str, Remote], owner: int, closed: threading.Event) -> None:
    if owner != os.getpid():  # a forked copy of the client: not ours to end
        return
    closed.set()
    while judges:
        judges.popitem()[1].close()


REST = 60.0
"""Seconds for which a device whose judge has failed gets nothing while there is another; twice as
long each time it fails again.
"""


class Balance:
    """Who has how much to do. Safe to use from many threads.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._under_way: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def take(self, names: Sequence[str], problem: str) -> str:
        """The one with the least under way, and of those rather one that has had it before; say
        `done` in the end.

        One that fails is soon done, and would have the least: it rests for a while.
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
        """One piece of work less; whether the judge, not the submission, failed at it."""
        with self._lock:
            self._under_way[name] -= 1
            now = self._clock()
            if not failed:
                self._failures[name] = 0
            elif now >= self._rests.get(name, now):  # else it is one of many that failed together
                self._rests[name] = now + REST * 2 ** self._failures[name]
                self._failures[name] += 1
