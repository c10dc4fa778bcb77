"""What all pools that send requests to judges elsewhere have in common."""

import asyncio
import functools
import os
import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self

from kevin_env.judge.api import (
    DeviceInfo,
    Facts,
    JudgeError,
    Judgement,
    OnStage,
    Options,
    Submission,
    device_names,
)
from kevin_env.judge.protocol import Request
from kevin_env.problem import Problem, ProblemError
from kevin_env.shortage import described

SPAWNING = threading.RLock()
"""Held while a judge process is started: a child forked meanwhile would keep its socket open."""
_POOLS: "weakref.WeakSet[RequestPool]" = weakref.WeakSet()


class RequestPool(ABC):
    """A `JudgePool` that sends requests to judges elsewhere.

    Close it, or use it as a context manager. Futures belong to the process that made the request:
    a forked child makes its own requests.
    """

    public = False
    """Whether its judges can be used by all who can reach them."""

    def __init__(self) -> None:
        RequestPool._after_fork(self)
        _POOLS.add(self)
        _watch_forks()

    def _after_fork(self) -> None:
        """In a forked child: forgets what the parent's threads are working on, and their locks."""
        self._facts: dict[tuple[object, ...], Future[Facts]] = {}
        self._facts_lock = threading.Lock()
        self._settling = threading.RLock()

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        """See `JudgePool.submit`."""
        more = {"submission": submission.model_dump()}
        return self._request("judge", problem, options, on_stage, **more)

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        """See `JudgePool.describe`. Cached by problem, choice of devices, language and baseline."""
        judged, chosen = problem.judged_as(options), (options.language, options.baseline)
        key = (problem.id, judged.sha256, options.device, options.inputs, *chosen)
        with self._facts_lock:
            known = self._facts.get(key)
            if known is None or (known.done() and known.exception() is not None):
                known = self._facts[key] = self._request("describe", problem, options)
        return known

    async def judge(self, problem: Problem, submission: Submission, options: Options) -> Judgement:
        """`submit` for an event loop."""
        return await asyncio.wrap_future(self.submit(problem, submission, options))

    @abstractmethod
    def device(self, name: str = "auto") -> DeviceInfo:
        """What the judge knows about a device.

        Raises:
            JudgeError: if there is none of that name.
        """

    def devices(self, choice: str) -> tuple[DeviceInfo, ...]:
        """As `device`, of each that a choice names."""
        names = ("auto",) if choice == "auto" else device_names(choice)
        return tuple(map(self.device, names))

    @abstractmethod
    def close(self) -> None:
        """See `JudgePool.close`."""

    def __deepcopy__(self, memo: object) -> Self:
        """Returns itself: Gymnasium copies an environment's arguments, and a pool is a handle."""
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _request(
        self,
        do: str,
        problem: Problem,
        options: Options,
        on_stage: OnStage | None = None,
        **more: Any,
    ) -> Future[Any]:
        known = {"problem": problem.model_dump(), "options": options.model_dump()}
        future: Future[Any] = Future()
        if do == "describe":  # several callers may share it, so none may cancel it
            future.set_running_or_notify_cancel()
        # otherwise `concurrent.futures.wait` never takes a cancelled future for done
        future.add_done_callback(
            lambda done: done.cancelled() and done.set_running_or_notify_cancel()
        )
        self._send({"id": uuid.uuid4().hex, "do": do, **known, **more}, future, on_stage)
        return future

    @abstractmethod
    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        """Starts a request whose value is set in the future. Never blocks, never raises."""

    def _settle_later(self, future: Future[Any], value: Callable[[], Any]) -> None:
        """Sets a value or its error in the future from a new thread. Never blocks, never raises."""

        def run() -> None:
            try:
                result = value()
                with self._settling:
                    if wanted(future):
                        future.set_result(result)
            except (JudgeError, ProblemError) as error:
                self._fail(future, error)
            except Exception as error:  # the boundary of a request, which must be answered
                self._fail(future, JudgeError(f"a request to the judge failed: {described(error)}"))

        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError as error:  # no more threads on this machine
            text = f"the request could not be sent to the judge: {described(error)}"
            self._fail(future, JudgeError(text))

    def _fail(self, future: Future[Any], error: Exception) -> None:
        """Fails a future, unless it has ended."""
        with self._settling:
            fail(future, error)


@functools.cache
def _watch_forks() -> None:
    def after_in_child() -> None:
        SPAWNING.release()
        for pool in list(_POOLS):
            pool._after_fork()

    os.register_at_fork(
        before=SPAWNING.acquire, after_in_parent=SPAWNING.release, after_in_child=after_in_child
    )


def fail(future: Future[Any], error: BaseException) -> None:
    """Fails a future, unless it has ended."""
    if wanted(future):
        future.set_exception(error)


def wanted(future: Future[Any]) -> bool:
    """Whether a result may be set; the future cannot be cancelled afterwards."""
    return future.running() or (not future.done() and future.set_running_or_notify_cancel())
