"""A judge process: reads requests from its client, judges in threads, answers in any order.

Run as `python -m kevin_env.judge.server FD PID`. It ends on SIGTERM, when the client hangs up, and
when the client PID ends; before that it ends its candidates and removes their folders.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kevin_env.candidate.wire import Channel, Closed, TooLong
from kevin_env.judge.api import Facts, JudgeError, Judgement, Options, Pace, Submission
from kevin_env.judge.protocol import Request, answer_of
from kevin_env.judge.sandbox.system import have_descriptors
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.lint.report import LintReport
from kevin_env.problem import Problem
from kevin_env.shortage import described

if TYPE_CHECKING:
    from kevin_env.judge.job import Cancellation
    from kevin_env.judge.judge import Judge

THREADS = 32
DESCRIBERS = 4
"""Threads for requests for facts, so that a new episode's prompt does not wait for judgements."""
END_SECONDS = 15.0
"""Within which a judge without a client has to end."""
SWITCH_SECONDS = 0.5e-3
"""How long a thread keeps Python's lock when another wants it: a tenth of the default.

A thread that times a submission must not wait for one that parses another.
"""


def start_judge(device: str, pace: Pace | None, memory: int | None, clock: Any = None) -> "Judge":
    """A judge whose fork server imports torch while this process does.

    Raises:
        JudgeError: if the device does not exist.
    """
    server = ForkServer(device.partition(":")[0])
    try:
        from kevin_env.judge.judge import Judge

        return Judge(device, server, pace, clock, memory)
    except BaseException:
        server.close()
        raise


class Server:
    """Answers the requests of one client on one device.

    Args:
        channel: To the client.
        start: Starts the judge.
    """

    def __init__(
        self,
        channel: Channel,
        start: Callable[[str, Pace | None, int | None], "Judge"] = start_judge,
    ) -> None:
        self._channel = channel
        self._start = start
        self._lock = threading.Lock()
        self._places = threading.Semaphore(THREADS + DESCRIBERS)
        self._alone = threading.Lock()
        self._starting = True
        self._wanted: dict[str, Cancellation] = {}
        """By the IDs of the requests that are not answered yet."""

    def serve(self) -> None:
        """Answers requests until the client hangs up or the device fails."""
        hello = self._channel.receive()
        try:
            pace = hello["pace"] and Pace.model_validate(hello["pace"])
            judge = self._start(hello["device"], pace, hello["memory"])
        except Exception as error:  # reported to the client
            text = str(error) if isinstance(error, JudgeError) else described(error)
            self._send({"fatal": text})
            return
        self._starting = False
        self._send({"device": judge.info.model_dump()})
        threading.Thread(target=self._beat, args=(judge, hello["beat"]), daemon=True).start()
        threads, describers = (
            ThreadPoolExecutor(n, initializer=judge.enter_thread) for n in (THREADS, DESCRIBERS)
        )
        try:
            while True:
                message = self._channel.receive()
                self._take(
                    message, judge, describers if message.get("do") == "describe" else threads
                )
        except Closed:
            return
        finally:
            judge.close()

    def end(self) -> None:
        """Ends `serve`. Called by a signal handler of its thread."""
        with contextlib.suppress(OSError):
            self._channel.sock.shutdown(socket.SHUT_RDWR)
        starting, self._starting = self._starting, False
        if starting:  # it does not read its channel yet
            sys.unraisablehook = lambda _: None  # a callback, as of an import, may not pass it on
            raise SystemExit

    def _beat(self, judge: "Judge", seconds: float) -> None:
        """Sends heartbeats while the process and its device work."""
        judge.enter_thread()
        while not (trouble := judge.trouble()):
            self._send({"beat": True})
            time.sleep(seconds)
        self._hang_up(trouble)

    def _hang_up(self, trouble: str) -> None:
        """Ends the process, in which everything else would fail."""
        sys.stderr.write(f"a judge ends and is replaced: {trouble}\n")
        with contextlib.suppress(OSError):
            self._channel.sock.shutdown(socket.SHUT_RDWR)

    def _take(self, message: dict[str, Any], judge: "Judge", threads: ThreadPoolExecutor) -> None:
        """Starts a request, or cancels one."""
        from kevin_env.judge.job import Cancellation

        if "cancel" not in message:
            self._wanted[message["id"]] = Cancellation()
            threads.submit(self._answer, judge, message)
        elif (wanted := self._wanted.get(message["cancel"])) is not None:
            wanted.cancel()

    def _answer(self, judge: "Judge", request: Request) -> None:
        alone, number = request["alone"], request["id"]
        with self._taking_place(alone):
            answer = answer_of(lambda: self.perform(judge, request, self._wanted[number]))
            trouble = judge.trouble()
            if trouble and not alone:  # any request in progress may be the cause
                self._hang_up(trouble)
                return
            if trouble and "judge_error" in answer:
                answer = {
                    "problem_error": f"{request['problem']['id']}: its reference fails: {trouble}"
                }
            del self._wanted[number]
            try:
                self._send({"id": number, **answer})
            except TooLong as error:
                self._send({"id": number, "judge_error": f"the answer is too long: {error}"})
            if trouble:
                self._hang_up(trouble)

    @contextlib.contextmanager
    def _taking_place(self, alone: bool) -> Iterator[None]:
        """Waits for a place, or for all of them."""
        with contextlib.ExitStack() as held:
            if alone:  # two with some places each would deadlock
                held.enter_context(self._alone)
            for _ in range(THREADS + DESCRIBERS if alone else 1):
                held.enter_context(self._places)
            yield

    def perform(
        self, judge: "Judge", request: Request, wanted: "Cancellation"
    ) -> Facts | LintReport | Judgement:
        """The value of a request. Errors as of `Judge`."""
        wanted.require_wanted()
        problem = Problem.model_validate(request["problem"])
        options = Options.model_validate(request["options"])
        if request["do"] == "describe":
            judge.bench.prepare(options.language)
            problem = problem.judged_as(options)
            facts = judge.bench.facts_of(problem)
            judge.verify_baseline(problem, options)  # before a reply is asked for
            return facts.told(judge.info, options)
        return judge.judge(
            problem,
            Submission.model_validate(request["submission"]),
            options,
            lambda stage: self._send({"id": request["id"], "stage": stage}),
            wanted,
        )

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(Closed):  # `serve` ends when the client is gone
            self._channel.send(message)


def main(kind: type[Server] = Server) -> None:
    """Serves the socket whose descriptor is the first argument."""
    for number in (signal.SIGINT, signal.SIGHUP):  # for the client: this process ends with it
        signal.signal(number, signal.SIG_IGN)
    server = kind(Channel(socket.socket(fileno=int(sys.argv[1]))))
    signal.signal(signal.SIGTERM, lambda *_: server.end())
    sys.setswitchinterval(SWITCH_SECONDS)
    have_descriptors()
    os.dup2(sys.stderr.fileno(), 1)  # a problem's prints must not mix with a command's output
    threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    try:
        server.serve()
    finally:
        os._exit(0)  # threads may still wait for candidates that are gone


def _end_with(parent: int) -> None:
    """Ends this process with the client, whose socket a forked copy of it may keep open."""
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(parent)], [], [])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS)  # a hanging driver may keep candidates alive
    os._exit(0)


if __name__ == "__main__":
    main()
