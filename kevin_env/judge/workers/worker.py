"""At which line of a submission its process crashed or hung, as `faulthandler` in that process
reports it: a claim.

The judge's handle on one candidate process.

Whatever a candidate sends is a claim. What it can do to the judge is answer, answer wrongly, be
late, or end; each of these is one of the exceptions of `errors`.

A candidate that stands still, runs or ends, for as long as something lasts or because of it.
"""

import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, Late, WireError, encode
from kevin_env.judge.api import JudgeError, Sandbox
from kevin_env.judge.handshake.memory import ProcessMemory, SharedRegion, memory_below
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import Broken, CandidateError, Ended, Failed, Failure, TimedOut
from kevin_env.judge.workers.launcher import START_SECONDS, Folder, ForkServer
from kevin_env.judge.workers.supervisor_channel import SupervisorChannel
from kevin_env.judge.workers.usage import Ran, descendants, faults, scheduled, starved

LIMIT = 1 << 16
"""Bytes that are read of such reports, as many as a pipe holds."""
_FRAME = re.compile(r'File "([^"]*)", line (\d{1,7}) in ')


class Faults:
    """A pipe for the reports of one candidate. Neither end blocks: a full pipe must not turn a
    crash into a hang.

    Args:
        path: The submission's file, as the candidate names it.

    Attributes:
        writer: The candidate's end; closed by whoever hands it over.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._report = ""

    def line(self, seconds: float = 0.0) -> int | None:
        """The innermost line in the submission's file; None where no report has come within so many
        seconds.
        """
        poll, deadline = select.poll(), time.monotonic() + seconds
        if self._reader >= 0:
            poll.register(self._reader, select.POLLIN)
        while (found := self._found()) is None and len(self._report) < LIMIT and self._reader >= 0:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1e3)
            if not ready or not (chunk := os.read(self._reader, LIMIT)):
                break
            self._report += chunk.decode(errors="replace")
        return found

    def close(self) -> None:
        """Nothing is read any more; what was found before is still known. Twice is fine."""
        if self._reader >= 0:
            self.line()
            os.close(self._reader)
        self._reader = -1

    def _found(self) -> int | None:
        """A crash in a thread without Python code names no current thread: then any thread's line
        counts.
        """
        frames = _FRAME.findall(self._report.rpartition("Current thread")[2])
        return next((int(line) for path, line in frames if path == self._path), None)


LOOK = 0.5
"""Seconds without an answer after which it is looked at whether the candidate runs. Shorter calls
cost nothing.
"""
LOG_HEAD = LOG_TAIL = 8_000
"""Bytes that are kept of a log's beginning and of its end, where the message before an `abort()`
is.
"""
REPORT_SECONDS = 0.25
"""In which a process that hangs has to report where: its signal handler takes less than a
millisecond.
"""


BUSY = 0.01
"""A process on a CPU that runs for a smaller share of the time than this only waits."""


@dataclass(frozen=True)
class Patience:
    """For an order to a submission.

    Attributes:
        seconds: For so long it may run. Seconds that its processes wait for a processor do not
            count.
        usual: What a later call may take. A first call may take no longer once it has launched all
            its work, or while its processes only wait: on a GPU a kernel may have to be loaded
            behind one that hangs.
        pause: Called after each `LOOK`, to let others go first. Its seconds do not count.
    """

    seconds: float
    usual: float
    pause: Callable[[], None] = lambda: None


class _Waits(Late):
    """The processes have only waited, for longer than a usual call may take."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


class Worker:
    """One candidate process, sandboxed and warm, waiting for a submission.

    Args:
        server: Where it is forked from.
        device: `cpu` or `cuda:0`; sets how it waits, too.
        memory: Bytes of its own, in its processes and in files that are held in memory, after which
            it is killed.
        tools: Whether NVIDIA's tools are to run in it: where it has a network of its own its
            processes may speak to each other over TCP, and where it has a /proc of its own all of
            them may use CUDA.

    Attributes:
        folder: Where it can write, under the same name on both sides.
        path: The submission's file in it.
        sandbox: Which protections hold.
        level: What they rest on.
        pid: Its keeper, of which it is a descendant.
        memory: Its own, on a CPU, where the judge may read it.
    """

    def __init__(self, server: ForkServer, device: str, memory: int, tools: bool = False) -> None:
        self.device = device
        self._folder = Folder()
        self.folder = self._folder.path
        self.path = str(self.folder / "submission.py")
        self._faults = Faults(self.path)
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0
        self._on_gpu = device != "cpu"
        self.memory: ProcessMemory | None = None
        channel, theirs = socket.socketpair()
        lifeline, keeper = socket.socketpair()
        reader, log = os.pipe()
        order = {
            "folder": str(self.folder), "environment": self._folder.environment, "spin": self._on_gpu, "memory": memory,
            "device": device, "tools": tools,
        }  # fmt: skip
        self._drain = threading.Thread(target=self._read_log, args=(reader,), daemon=True)
        self._drain.start()
        self._channel = Channel(channel)
        self._lifeline = SupervisorChannel(lifeline)
        try:
            with (
                theirs,
                keeper,
                os.fdopen(log, "wb") as pipe,
                os.fdopen(self._faults.writer, "wb") as faults,
            ):
                server.fork(
                    order, (theirs.fileno(), keeper.fileno(), pipe.fileno(), faults.fileno())
                )
            self.sandbox, self.level, self.pid = self._greeted()
            if not self._on_gpu:
                self.memory = memory_below(self.pid)
        except JudgeError:
            self.close()
            raise

    def prepare(self, threads: int) -> None:
        """Makes the CUDA context, or sets the number of CPU threads."""
        self.ask(
            "prepare",
            START_SECONDS,
            device=self.device,
            threads=threads,
            readable=self.memory is not None,
        )

    def ask(
        self, order: str, timeout: float | Patience, fds: tuple[int, ...] = (), frozen: bool = False,
        before: Callable[[], None] | None = None, meanwhile: Callable[[], None] | None = None, **fields: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Gives one order and returns the answer. One that is `frozen` goes on with the order
        before it, no earlier.

        Args:
            order: Its name.
            timeout: Seconds; or how long a submission is waited for, which is looked at while it
                does not answer.
            fds: Descriptors that ride along.
            frozen: See above.
            before: Called when the order is ready to be sent, so that a clock that starts there has
                nothing else in it.
            meanwhile: Called once it has the order.
            fields: Of the order.

        Raises:
            Failed, Ended, TimedOut, Broken: see there.
        """
        frame = encode({"order": order, **fields})
        seconds = timeout.seconds if isinstance(timeout, Patience) else timeout
        if before:
            before()
        if self._channel.pending():
            raise (self._channel.ended() and self._lifeline.why_ended()) or Broken(
                "it spoke without being asked"
            )
        try:
            self._channel.send_frame(frame, fds, seconds)
            if frozen:
                self.freeze(False)
            if meanwhile:
                meanwhile()
            answer = (
                self._patiently(timeout)
                if isinstance(timeout, Patience)
                else self._channel.receive(seconds)
            )
        except Closed:
            raise self._lifeline.why_ended() or Broken("it closed its channel") from None
        except Late as late:
            with suppress(Ended):
                self._lifeline.report()
                self._faults.line(REPORT_SECONDS)
            raise TimedOut(late.seconds if isinstance(late, _Waits) else seconds) from None
        except WireError as error:
            raise Broken(str(error)) from None
        if "failure" in answer:
            raise Failed(Failure.read(answer["failure"]))
        return answer

    def answers_within(self, seconds: float) -> bool:
        """Whether it answers, or ends, within so many seconds; the answer is still to be received."""
        return self._channel.pending(seconds)

    def share(self, name: str, region: SharedRegion, timeout: float | Patience) -> None:
        """Lends it a region under a name."""
        self.ask("region", timeout, region.fds, name=name, **region.order)
        if region.fds:  # memory of this machine that is not the candidate's own
            self._lifeline.lend(name, region.size)

    def attend(self, closely: bool) -> None:
        """Whether the judge burns a core while it waits for an answer on a GPU, to meet it without
        delay.

        For times alone: threads that wait so hinder each other, as they take turns with Python's
        one lock.
        """
        self._channel.spin = closely and self._on_gpu

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        """Stops every process of the candidate, or lets them go on.

        Args:
            frozen: Which of the two.
            wait: Whether until it is done. Else what follows is beside it, and `settle` waits.

        Raises:
            Ended: if it is gone; without `wait` that is told later.
        """
        self._lifeline.freeze(frozen, wait)

    def settle(self) -> None:
        """Waits until it stands still or runs as it was told last. Errors as `freeze`."""
        self._lifeline.settle()

    @property
    def stood_still(self) -> bool:
        """Whether it did when it was stopped the last time, until it was let go on."""
        return self._lifeline.stood_still

    def end(self, limit: str) -> None:
        """Has everything killed, from any thread; whoever waits for it gets `Ended` with this
        limit.
        """
        self._lifeline.end(limit)

    @property
    def waiting(self) -> bool:
        """Whether it is alive and silent, as one that waits for an order is."""
        return not self._channel.pending()

    @property
    def shot(self) -> bool:
        """Whether it was killed, and not for a limit: by itself, or by something on this machine
        that was not it.
        """
        return self._lifeline.shot

    @property
    def limited(self) -> bool:
        """Whether it was killed for a limit."""
        return self._lifeline.limited

    @property
    def log(self) -> str:
        """What it wrote to stdout and stderr so far: the beginning and the end."""
        gap = f"\n... {self._left_out} bytes left out ...\n" if self._left_out else ""
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")

    @property
    def fault_line(self) -> int | None:
        """The line of the submission at which its process crashed or hung, as it claims; None where
        it does not.
        """
        return self._faults.line()

    def dismiss(self) -> None:
        """Has everything killed that the submission started; `close` waits until it is. It is told
        nothing more.
        """
        self._lifeline.dismiss()

    def close(self) -> None:
        """Kills everything the submission started and removes its folder. Twice is fine."""
        self._channel.close()
        self._lifeline.close()
        if self.memory:
            self.memory.close()
        self._faults.close()
        self._drain.join(1)
        self._folder.remove()

    def _patiently(self, patience: Patience) -> dict[str, Any]:
        """Its answer. Raises as `Channel.receive`."""
        left, waits = patience.seconds, 0.0
        before: Ran | None = None
        seen = (0, 0)
        while True:
            began = time.monotonic()
            try:
                return self._channel.receive(min(LOOK, left))
            except Late:
                elapsed, processes = time.monotonic() - began, list(descendants(self.pid))
                now, found = scheduled(processes), faults(processes)
                ran = now.ran - before.ran if before else elapsed
                waiting = found == seen and (
                    self.device != "cpu" or ran < BUSY * elapsed
                )  # for a GPU it may spin
                elapsed -= starved(elapsed, before, now) if before else 0.0
                left, waits = left - elapsed, waits + elapsed if waiting else 0.0
                before, seen = now, found
                if left <= 0:
                    raise
                if waits > patience.usual:
                    raise _Waits(patience.usual) from None
                patience.pause()

    def _greeted(self) -> tuple[Sandbox, LevelName, int]:
        try:
            return self._lifeline.greet()
        except JudgeError as error:
            raise JudgeError(f"a candidate process did not start: {error}; {self.log}") from error

    def _read_log(self, reader: int) -> None:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                room = LOG_HEAD - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[room:]
                self._left_out += max(0, len(self._tail) - LOG_TAIL)
                del self._tail[:-LOG_TAIL]


@contextmanager
def awake(worker: Worker) -> Iterator[None]:
    """Lets a process run that stands still otherwise; `Worker.settle` waits until it does either."""
    worker.freeze(False, wait=False)
    try:
        yield
    finally:
        worker.freeze(True, wait=False)


@contextmanager
def asleep(worker: Worker, wait: bool = True) -> Iterator[None]:
    """Stops every process of a candidate while something else is done; one that is gone is noticed
    later.

    Args:
        worker: The candidate.
        wait: Until it stands still, before others are given what it has used.
    """
    with suppress(CandidateError):
        worker.freeze(True, wait)
    try:
        yield
    finally:
        worker.freeze(False, wait=False)


@contextmanager
def ended_on_error(worker: Worker) -> Iterator[None]:
    """Ends a candidate that fails inside; held inside a lease, it ends before others get the
    device.

    Stopping its process would not do: a kernel of it that hangs ends with the process alone.
    """
    try:
        yield
    except CandidateError:
        worker.close()
        raise
