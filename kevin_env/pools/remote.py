"""The connector to one judge process. Imports no torch."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from typing import Any

from kevin_env.candidate.wire import Channel, Late, TooLong, WireError
from kevin_env.judge.api import DeviceInfo, JudgeError, OnStage, Pace
from kevin_env.judge.environment import without_secrets
from kevin_env.judge.protocol import Answer, Request
from kevin_env.judge.sandbox.readable import NAME as READABLE
from kevin_env.judge.waiting import waiting
from kevin_env.pools.base import SPAWNING, fail

STEADY = {
    # threads that spin after their work would disturb the next process that is timed
    "OMP_WAIT_POLICY": "PASSIVE",
    # keep freed memory: faulting in fresh pages takes longer than many a kernel
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # glibc's maximum
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Environment of judges and candidates that keeps times on a CPU steady."""
START_SECONDS = 240.0
CLOSE_SECONDS = 30.0
BEAT_SECONDS = 10.0
"""How often a judge reports that it and its device still answer."""
MISSED = 12
"""Heartbeats in a row that a judge may miss."""


class JudgeGone(JudgeError):
    """The judge process ended or stopped answering; another may do the work."""


class NoJudge(JudgeGone):
    """The judge does not start: there is no such device, or it took too long."""


class Remote:
    """A judge process, and the futures of its requests.

    Args:
        device: `cpu` or `cuda:0`.
        pace: As for `Judge`.
        memory: As for `Judge`.
        patience: Seconds in which it has to start.
        beat: Seconds between two heartbeats; the judge is killed after `MISSED` missing ones.
        program: What Python runs, as its arguments. Tests pass a judge that imports no torch.
        readable: Places that candidates may read, as for `LocalPool`.
    """

    def __init__(
        self,
        device: str,
        pace: Pace | None = None,
        memory: int | None = None,
        patience: float = START_SECONDS,
        beat: float = BEAT_SECONDS,
        program: Sequence[str] = ("-m", "kevin_env.judge.server"),
        readable: Sequence[str] = (),
    ) -> None:
        environment = without_secrets(os.environ) | STEADY | {READABLE: ":".join(readable)}
        with SPAWNING:
            parent, child = socket.socketpair()
            with child:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", *program, str(child.fileno()), str(os.getpid())],
                    pass_fds=(child.fileno(),),
                    stdin=subprocess.DEVNULL,
                    env=environment,
                )
        self._channel = Channel(parent)
        self._device = device
        self._waiting: dict[str, tuple[Future[Answer], OnStage | None]] = {}
        self._lock = threading.Lock()
        self._ready: Future[DeviceInfo] = Future()
        self.alive = True
        self._patience, self._beat = patience, beat
        chosen = {"pace": pace and pace.model_dump(), "memory": memory}
        hello = {"device": device, **chosen, "beat": beat}
        threading.Thread(target=self._listen, args=(hello,), daemon=True).start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def info(self) -> DeviceInfo:
        """What the judge knows about its device; blocks until it has started.

        Raises:
            NoJudge: if the device does not exist, or the judge takes too long.
            JudgeGone: if it ended while it was starting.
        """
        return self._ready.result()

    def ask(self, request: Request, on_stage: OnStage | None = None) -> Future[Answer]:
        """Sends a request.

        Raises (from the future):
            JudgeGone: if the process is gone.
            JudgeError: if the request is too long.
        """
        number, future = request["id"], Future[Answer]()
        with self._lock:
            self._waiting[number] = (future, on_stage)
        try:
            self._send(request)
        except WireError as error:
            long = isinstance(error, TooLong)
            if not long:  # the next request goes to another judge
                self.alive = False
            if self._waiting.pop(number, None) is not None:  # else the future has failed already
                text = f"too long to be judged: {error}"
                fail(future, JudgeError(text) if long else JudgeGone("the judge process is gone"))
        return future

    def cancel(self, number: str) -> None:
        """Ends the judgement of a request, which then fails with `JudgeError`."""
        if number in self._waiting:
            with suppress(WireError):  # the judge is gone
                self._send({"cancel": number})

    def hang_up(self) -> None:
        """Has the process end itself and all that it started; `close` waits for it."""
        self.alive = False
        with suppress(OSError):
            self._channel.sock.shutdown(socket.SHUT_RDWR)
        self._process.terminate()  # one that is still starting does not read its socket

    def kill(self) -> None:
        """Ends the process at once; its requests fail with `JudgeGone`."""
        self.alive = False
        self._process.kill()

    def abandon(self) -> None:
        """In a forked child: leaves the process to the parent."""
        self.alive = False
        self._channel.close()
        self._process.returncode = 0  # so that nothing signals it or waits for it

    def close(self) -> None:
        """Ends the process. Idempotent."""
        self.hang_up()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # a hanging driver may keep it alive
                self._process.wait(CLOSE_SECONDS)
        self._channel.close()

    def _listen(self, hello: dict[str, Any]) -> None:
        try:
            self._channel.send(hello)
            with waiting(f"the judge of {self._device} to start"):
                answer = self._channel.receive(self._patience)
            if "fatal" in answer:
                raise NoJudge(answer["fatal"])
            self._ready.set_result(DeviceInfo.model_validate(answer["device"]))
            while True:
                late = not self._channel.pending(self._beat)  # a timer is a thread
                with (
                    waiting(f"an answer of the judge of {self._device}") if late else nullcontext()
                ):
                    answer = self._channel.receive((MISSED - late) * self._beat)
                if "beat" not in answer:
                    self._deliver(answer)
        except JudgeGone as error:
            self._fail(error)
        except Late:
            self._process.kill()
            if self._ready.done():
                self._fail(JudgeGone("the judge process has stopped answering"))
            else:
                text = f"the judge process did not start within {self._patience:g} s"
                self._fail(NoJudge(text))
        except (WireError, OSError):
            self._fail(JudgeGone("the judge process is gone"))
        except Exception as error:  # the boundary of a judge's answers: every future must end
            text = f"an answer of the judge could not be read: {type(error).__name__}: {error}"
            self._fail(JudgeError(text))

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._channel.send(message)

    def _deliver(self, answer: dict[str, Any]) -> None:
        if "stage" not in answer:
            future, _ = self._waiting.pop(answer["id"])
            future.set_result(answer)
            return
        _, on_stage = self._waiting[answer["id"]]
        if on_stage is not None:
            with suppress(Exception):  # a failing display must not affect the verdict
                on_stage(answer["stage"])

    def _fail(self, error: JudgeError) -> None:
        self.close()
        if not self._ready.done():
            self._ready.set_exception(error)
        while self._waiting:
            _, (future, _) = self._waiting.popitem()
            fail(future, error)
