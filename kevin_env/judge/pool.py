"""The client's side of judging: starts judge processes, hands them work, gives futures. Imports no torch."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, WireError
from kevin_env.judge.api import DeviceInfo, Facts, JudgeError, Judgement, OnStage, Options, Submission
from kevin_env.judge.lint.report import Limits, LintReport
from kevin_env.problem import Problem, ProblemError

STEADY = {
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin after their work would disturb whoever is timed next
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the most that glibc takes; memory is kept, and with it its pages:
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),  # faulting in fresh ones takes longer than many a kernel
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Environment of judges and candidates that keeps times on a CPU steady."""
START_SECONDS = 240.0
CLOSE_SECONDS = 15.0


class LocalPool:
    """Judges on the devices of this machine, each started when it is first needed.

    Safe to use from many threads. Close it, or use it as a context manager; it also closes when it is collected and
    when the interpreter exits. In a forked child it starts judges of the child's own.
    """

    def __init__(self) -> None:
        self._judges: dict[str, _Remote] = {}
        self._facts: dict[tuple[str, str, str, str], Future[Facts]] = {}
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
        """See `Describer.describe`. Asked once for a problem and device."""
        key = (problem.id, problem.sha256, options.device, options.inputs)
        with self._lock:
            known = self._facts.get(key)
        if known is None or (known.done() and known.exception() is not None):
            known = self._request(
                problem, options, {"do": "describe"}, lambda a: Facts.model_validate(a["facts"]), None
            )
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
        """What the judge of a device knows of it.

        Raises:
            JudgeError: when the device is not there.
        """
        return self._judge(name).info

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
        future.set_running_or_notify_cancel()

        def start() -> None:
            try:
                whole = {**request, "problem": problem.model_dump(), "options": options.model_dump()}
                self._judge(options.device).ask(whole, future, read, on_stage)
            except JudgeError as error:
                future.set_exception(error)

        threading.Thread(target=start, daemon=True).start()
        return future

    def _judge(self, device: str) -> "_Remote":
        name = ("cuda:0" if gpu_present() else "cpu") if device == "auto" else device
        name = "cuda:0" if name == "cuda" else name
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
                judge = self._judges[name] = _Remote(name)
        judge.wait_until_ready()
        return judge


class _Remote:
    """One judge process."""

    def __init__(self, device: str) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kevin_env.judge.server", str(theirs.fileno()), str(os.getpid())],
            pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL,
            env=os.environ | STEADY,
        )  # fmt: skip
        theirs.close()
        self._channel = Channel(ours)
        self._waiting: dict[int, tuple[Future[Any], Any, OnStage | None]] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._ready: Future[DeviceInfo] = Future()
        self.alive = True
        threading.Thread(target=self._listen, args=(device,), daemon=True).start()

    @property
    def info(self) -> DeviceInfo:
        return self._ready.result(START_SECONDS)

    def wait_until_ready(self) -> None:
        self._ready.result(START_SECONDS)

    def ask(self, request: dict[str, Any], future: Future[Any], read: Any, on_stage: OnStage | None) -> None:
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = (future, read, on_stage)
        try:
            with self._lock:
                self._channel.send({"id": number, **request})
        except WireError as error:
            self._waiting.pop(number, None)
            raise JudgeError("the judge process is gone") from error

    def close(self) -> None:
        self.alive = False
        with suppress(OSError):
            self._channel.sock.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._channel.close()

    def _listen(self, device: str) -> None:
        try:
            self._channel.send({"device": device})
            hello = self._channel.receive(START_SECONDS)
            if "fatal" in hello:
                raise JudgeError(hello["fatal"])
            self._ready.set_result(DeviceInfo.model_validate(hello["device"]))
            while True:
                self._deliver(self._channel.receive())
        except JudgeError as error:
            self._fail(error)
        except (WireError, OSError):
            self._fail(JudgeError("the judge process is gone"))
        except Exception as error:  # the boundary round a judge's answers: nobody may wait for ever
            self._fail(JudgeError(f"an answer of the judge could not be read: {type(error).__name__}: {error}"))

    def _deliver(self, answer: dict[str, Any]) -> None:
        if "stage" in answer:
            on_stage = self._waiting[answer["id"]][2]
            if on_stage is not None:
                on_stage(answer["stage"])
            return
        future, read, _ = self._waiting.pop(answer["id"])
        if "problem_error" in answer:
            future.set_exception(ProblemError(answer["problem_error"]))
        elif "judge_error" in answer:
            error = JudgeError(answer["judge_error"])
            if "trace" in answer:
                error.add_note(answer["trace"])
            future.set_exception(error)
        else:
            future.set_result(read(answer))

    def _fail(self, error: JudgeError) -> None:
        self.alive = False
        if not self._ready.done():
            self._ready.set_exception(error)
        while self._waiting:
            _, (future, _, _) = self._waiting.popitem()
            future.set_exception(error)


def gpu_present() -> bool:
    """Whether the kernel shows an NVIDIA device that may be used; finds out without CUDA."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1") and any(Path("/dev").glob("nvidia[0-9]*"))


def _close_all(judges: dict[str, _Remote], owner: int) -> None:
    if owner != os.getpid():  # a forked copy of the client: not ours to end
        return
    while judges:
        judges.popitem()[1].close()
