"""The client's side of judging: starts judge processes, hands them work, gives futures. Imports no torch."""

import asyncio
import os
import threading
import weakref
from concurrent.futures import Future
from typing import Any

from kevin_env.judge.api import DeviceInfo, Facts, JudgeError, Judgement, OnStage, Options, Submission
from kevin_env.judge.choice import Balance, device_names
from kevin_env.judge.lint.report import Limits, LintReport
from kevin_env.judge.pace import Pace
from kevin_env.judge.remote import Remote, fail
from kevin_env.problem import Problem


class LocalPool:
    """Judges on the devices of this machine, each started when it is first needed.

    Where a choice of devices has several, as `cuda:0,1`, a submission goes to the one with the least under way, and of
    those rather to one that knows its problem. They have to be alike: the prompt tells of the first.

    Safe to use from many threads. Close it, or use it as a context manager; it also closes when it is collected and
    when the interpreter exits. In a forked child it starts judges of the child's own.

    Args:
        pace: How many calls a verdict takes; by default what `PACES` has for each kind of device.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace
        self._judges: dict[str, Remote] = {}
        self._facts: dict[tuple[str, str, str, str], Future[Facts]] = {}
        self._balance = Balance()
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._close = weakref.finalize(self, _close_all, self._judges, os.getpid())
        self._closed = False

    def submit(
        self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage | None = None
    ) -> Future[Judgement]:
        """See `JudgePool.submit`."""
        request = {"do": "judge", "submission": submission.model_dump()}
        return self._request(problem, options, request, lambda a: Judgement.model_validate(a["judgement"]), on_stage)

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        """See `Describer.describe`. Asked once for a problem and choice of devices, of the first of them."""
        key = (problem.id, problem.sha256, options.device, options.inputs)
        with self._lock:
            known = self._facts.get(key)
        if known is None or (known.done() and known.exception() is not None):
            first = options.model_copy(update={"device": device_names(options.device)[0]})
            known = self._request(problem, first, {"do": "describe"}, lambda a: Facts.model_validate(a["facts"]), None)
            with self._lock:
                self._facts[key] = known
        return known

    def lint(self, problem: Problem, options: Options, limits: Limits | None = None) -> Future[LintReport]:
        """Whether the problem is fit to be trained on, on a device. A reference that fails is a finding.

        Raises (from the future):
            JudgeError: if the judge fails or the device is not there.
        """
        request = {"do": "lint", "limits": (limits or Limits()).model_dump()}
        return self._request(problem, options, request, lambda a: LintReport.model_validate(a["report"]), None)

    async def judge(self, problem: Problem, submission: Submission, options: Options) -> Judgement:
        """`submit` for code that runs in an event loop."""
        return await asyncio.wrap_future(self.submit(problem, submission, options))

    def device(self, name: str = "auto") -> DeviceInfo:
        """What the judge of a device knows of it; of the first where `name` means several.

        Raises:
            JudgeError: when the device is not there.
        """
        return self._judge(device_names(name)[0]).info

    def close(self) -> None:
        """Ends every process of the pool, for good. Twice is fine."""
        self._closed = True
        self._close()

    def __deepcopy__(self, memo: object) -> "LocalPool":
        """Itself: Gymnasium copies an environment's keywords, and a pool is a handle on processes."""
        return self

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _request(
        self, problem: Problem, options: Options, request: dict[str, Any], read: Any, on_stage: OnStage | None
    ) -> Future[Any]:
        future: Future[Any] = Future()
        if request["do"] == "describe":  # several may wait for it: none of them may cancel it
            future.set_running_or_notify_cancel()

        def start() -> None:
            try:
                whole = {**request, "problem": problem.model_dump(), "options": options.model_dump()}
                self._choose(problem, options.device, future).ask(whole, future, read, on_stage)
            except JudgeError as error:
                fail(future, error)
            except Exception as error:  # the boundary round a request: nobody may wait for it for ever
                fail(future, JudgeError(f"the judge could not be asked: {type(error).__name__}: {error}"))

        threading.Thread(target=start, daemon=True).start()
        return future

    def _choose(self, problem: Problem, choice: str, future: Future[Any]) -> Remote:
        """The judge for one request, which is under way there until its future is done."""
        names = device_names(choice)
        name = self._balance.take(names, problem.sha256)
        future.add_done_callback(lambda done: self._balance.done(name, _failed(done)))
        judge = self._judge(name)
        first = judge if name == names[0] else self._judge(names[0])
        if first.info.name != judge.info.name:
            raise JudgeError(
                f"{names[0]} is {first.info.name}, {name} is {judge.info.name}: choose devices of one kind"
            )
        return judge

    def _judge(self, name: str) -> Remote:
        """The judge of one device, ready."""
        with self._lock:
            if self._closed:
                raise JudgeError("the pool is closed")
            if self._owner != os.getpid():  # a forked trainer: the judges are its parent's
                self._judges.clear()
                self._owner = os.getpid()
                self._close = weakref.finalize(self, _close_all, self._judges, self._owner)
            judge = self._judges.get(name)
            if judge is not None and not judge.alive:
                judge.close()
            if judge is None or not judge.alive:
                judge = self._judges[name] = Remote(name, self._pace)
        _ = judge.info
        return judge


def _failed(done: Future[Any]) -> bool:
    """Whether the judge failed, not whoever asked."""
    return not done.cancelled() and isinstance(done.exception(), JudgeError)


def _close_all(judges: dict[str, Remote], owner: int) -> None:
    if owner != os.getpid():  # a forked copy of the client: not ours to end
        return
    while judges:
        judges.popitem()[1].close()
