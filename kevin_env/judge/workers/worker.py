"""The judge's handle on one candidate process.

Whatever a candidate sends is a claim. It can answer, answer wrongly, be late, or end; each of these
is an exception of `errors`.
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
from typing import Any, Literal

from kevin_env.candidate.wire import Channel, Closed, Late, WireError, encode
from kevin_env.judge.api import JudgeError
from kevin_env.judge.device import Gpu
from kevin_env.judge.handshake.memory import ProcessMemory, SharedRegion, memory_below
from kevin_env.judge.sandbox.attempts import Excess
from kevin_env.judge.workers.errors import Broken, CandidateError, Ended, Failed, Failure, TimedOut
from kevin_env.judge.workers.launcher import START_SECONDS, Folder, ForkServer
from kevin_env.judge.workers.supervisor_channel import SupervisorChannel
from kevin_env.judge.workers.usage import CpuUse, GpuUse

LOG_HEAD = LOG_TAIL = 8_000
"""Bytes kept from the start and the end of a log; the message before an `abort()` is at the end."""
REPORT_SECONDS = 0.25
"""For a hung process to report its stack: its signal handler takes less than a millisecond."""
REPORT_LIMIT = 1 << 16
"""Bytes read of such reports: the capacity of a pipe."""
LOOK, LOOKS = 0.5, 5
"""Seconds without an answer between checks that the candidate runs; on a GPU, where one that hangs
holds the lane, there are so many checks in a usual call's time. Shorter calls cost nothing."""
CONTEXT_SECONDS = 10.0
"""For creating a CUDA context: it takes 0.1 s, or 0.4 s while other processes create one."""
_FRAME = re.compile(r'File "([^"]*)", line (\d{1,7}) in ')
_ACCESS = re.compile(r"^Guard: ((?:read|wrote|accessed) byte -?\d{1,19} of \d{1,19})$", re.M)


@dataclass(frozen=True)
class Patience:
    """How long to wait for a submission to answer.

    Attributes:
        seconds: How long it may run: on a CPU as `usage.charged` counts, on a GPU without the time
            in which its processes wait for a processor.
        usual: How long its processes may only wait. On a GPU that is what a later call may take,
            since a kernel may have to be loaded behind one that hangs. A first call may take no
            longer once it has launched all its work.
        pause: Called after each `LOOK`, to let others go first. Its time does not count.
    """

    seconds: float
    usual: float
    pause: Callable[[], None] = lambda: None


class _Waits(Late):
    """The processes have only waited, for these seconds."""


class Faults:
    """A pipe on which a candidate's `faulthandler` reports where it crashed or hung: a claim.

    Neither end blocks: a full pipe must not turn a crash into a hang.

    Args:
        path: The submission's file, as the candidate names it.

    Attributes:
        writer: The candidate's end. The caller closes it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._report = ""

    def line(self, seconds: float = 0.0) -> int | None:
        """The innermost line in the submission's file; None if no report arrives in that time."""
        poll, deadline = select.poll(), time.monotonic() + seconds
        if self._reader >= 0:
            poll.register(self._reader, select.POLLIN)
        while (
            (line := self._found()) is None
            and len(self._report) < REPORT_LIMIT
            and self._reader >= 0
        ):
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1e3)
            if not ready or not (chunk := os.read(self._reader, REPORT_LIMIT)):
                break
            self._report += chunk.decode(errors="replace")
        return line

    @property
    def access(self) -> str:
        """What it reported of an index out of bounds, such as `wrote byte 64 of 64`; or empty."""
        found = _ACCESS.search(self._report)
        return found[1] if found else ""

    def close(self) -> None:
        """Stops reading; `line` still returns what was reported before. Idempotent."""
        if self._reader >= 0:
            self.line()
            os.close(self._reader)
        self._reader = -1

    def _found(self) -> int | None:
        # a crash in a thread without Python code names no current thread: then any thread counts
        frames = _FRAME.findall(self._report.rpartition("Current thread")[2])
        return next((int(line) for path, line in frames if path == self._path), None)


class _Log:
    """The start and the end of what arrives on a pipe, read by a thread until the pipe closes."""

    def __init__(self, reader: int) -> None:
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0
        self._thread = threading.Thread(target=self._read, args=(reader,), daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        gap = f"\n... {self._left_out} bytes left out ...\n" if self._left_out else ""
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _read(self, reader: int) -> None:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                room = LOG_HEAD - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[room:]
                self._left_out += max(0, len(self._tail) - LOG_TAIL)
                del self._tail[:-LOG_TAIL]


class Worker:
    """One candidate process, sandboxed and warm, waiting for a submission.

    Args:
        server: The fork server to fork it from.
        device: `cpu` or `cuda:0`.
        memory: Bytes that its processes and its in-memory files may hold before it is killed.
        tools: Whether NVIDIA's tools are to run in it. If it has a network namespace, its processes
            may then use TCP among themselves; if it has its own /proc, all may use CUDA.
        attempt: What it tries against its sandbox before it serves.
        gpu: The only GPU that it sees, which is its `cuda:0`; None: it sees all.

    Attributes:
        folder: Its writable folder, with the same name on both sides.
        path: The submission's file in that folder.
        faults: What it claims about a crash.
        held: The protections that withstood what it tried.
        level: The sandbox level.
        pid: Its supervisor, of which it is a descendant.
        memory: The memory of its process, on a CPU and where the judge may read it.
        has_context: Whether it has a CUDA context, or is for a CPU.
        charged: Seconds that have counted against its limits so far.

    Raises:
        JudgeError: if it does not start.
    """

    def __init__(
        self, server: ForkServer, device: str, memory: int, tools: bool = False,
        attempt: Literal["little", "everything"] | Excess = "little", gpu: Gpu | None = None,
    ) -> None:  # fmt: skip
        self.device = device
        self._folder = Folder()
        self.folder = self._folder.path
        self.path = str(self.folder / "submission.py")
        self.faults = Faults(self.path)
        self.memory: ProcessMemory | None = None
        self.has_context, self.charged = device == "cpu", 0.0
        only = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu.uuid}
        order = {
            "folder": str(self.folder), "environment": self._folder.environment | only,
            "groups": self._folder.groups, "memory": memory, "device": device, "tools": tools,
            "attempt": attempt, "gpu": "" if device == "cpu" else gpu and gpu.node,
        }  # fmt: skip
        channel, candidate = socket.socketpair()
        control, supervisor = socket.socketpair()
        reader, log = os.pipe()
        self._log = _Log(reader)
        self._channel, self._closing = Channel(channel), threading.RLock()
        self._supervisor = SupervisorChannel(control)
        try:
            with (
                candidate,
                supervisor,
                os.fdopen(log, "wb") as pipe,
                os.fdopen(self.faults.writer, "wb") as faults,
            ):
                ends = (candidate, supervisor, pipe, faults)
                server.fork(order, tuple(end.fileno() for end in ends))
            try:
                self.held, self.level, self.pid = self._supervisor.greet()
            except JudgeError as error:
                text = f"a candidate process did not start: {error}; {self.log}"
                raise JudgeError(text) from error
            if device == "cpu":
                self.memory = memory_below(self.pid)
        except BaseException:
            self.close()
            raise

    def prepare(self, threads: int) -> None:
        """Sets the device and the number of CPU threads."""
        readable = self.memory is not None
        self.ask("prepare", START_SECONDS, device=self.device, threads=threads, readable=readable)

    def create_context(self, queues: int = 0, cached: int = 0) -> None:
        """Creates the CUDA context. Arguments as of the candidate's order; errors as `answer`."""
        self.ask("create_context", CONTEXT_SECONDS, queues=queues, cached=cached)
        self.has_context = True

    def ask(
        self, order: str, timeout: float | Patience, fds: tuple[int, ...] = (), **fields: Any
    ) -> dict[str, Any]:
        """Gives one order and returns the answer: `send`, then `answer`."""
        self.send(encode({"order": order, **fields}), timeout, fds)
        return self.answer(timeout)

    def send(self, frame: bytes, timeout: float | Patience, fds: tuple[int, ...] = ()) -> None:
        """Sends an encoded order, with descriptors. Errors as `answer`."""
        if self._channel.pending():
            raise (self._channel.ended() and self._supervisor.why_ended()) or Broken(
                "it sent a message without an order"
            )
        try:
            self._channel.send_frame(frame, fds, _seconds(timeout))
        except WireError as error:
            raise self._error_of(error, timeout) from None

    def answer(self, timeout: float | Patience) -> dict[str, Any]:
        """Receives the answer to the last order.

        Raises:
            CandidateError: one of `Failed`, `Ended`, `TimedOut`, `Broken`.
        """
        try:
            if isinstance(timeout, Patience):
                answer = self._patiently(timeout)
            else:
                answer = self._channel.receive(timeout)
        except WireError as error:
            raise self._error_of(error, timeout) from None
        if "failure" in answer:
            raise Failed(Failure.read(answer["failure"]))
        return answer

    def answers_within(self, seconds: float) -> bool:
        """Whether it answers or ends in that time; the answer is still to be received."""
        return self._channel.pending(seconds)

    def share(self, name: str, region: SharedRegion, timeout: float | Patience) -> None:
        """Lends it a region under a name."""
        self.ask("region", timeout, region.fds, name=name, **region.order)
        if region.fds:  # memory of this machine that is not the candidate's own
            self._supervisor.lend(name, region.size)

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        """Stops every process of the candidate, or lets them go on.

        Args:
            frozen: Whether to stop.
            wait: Whether to wait until it is done. Otherwise call `settle` later.

        Raises:
            Ended: if the candidate is gone; without `wait`, `settle` raises it.
        """
        self._supervisor.freeze(frozen, wait)

    def settle(self) -> None:
        """Waits until the last `freeze` has taken effect. Errors as `freeze`."""
        self._supervisor.settle()

    def end(self, limit: str) -> None:
        """Kills everything, from any thread; a thread that waits for it gets `Ended(limit=...)`."""
        self._supervisor.end(limit)

    def end_within(self, seconds: float) -> Ended | None:
        """How it ended, if it does so in this time without another message; None otherwise."""
        if not self._channel.pending(seconds) or not self._channel.ended():
            return None
        return self._supervisor.why_ended()

    @property
    def shot(self) -> bool:
        """Whether it was killed, but not for a limit: by itself or by something on this machine."""
        return self._supervisor.shot

    @property
    def log(self) -> str:
        """What it has written to stdout and stderr: the beginning and the end."""
        return str(self._log)

    def dismiss(self) -> None:
        """Has everything killed that the submission started; `close` waits for it."""
        self._supervisor.dismiss()

    def close(self) -> None:
        """Kills everything the submission started and removes its folder. Idempotent."""
        with self._closing:  # the pool may be closed by another thread than a submission's own
            self._channel.close()
            self._supervisor.close()
            if self.memory:
                self.memory.close()
            self.faults.close()
            self._log.join(1)
            self._folder.remove()

    def _error_of(self, error: WireError, timeout: float | Patience) -> CandidateError:
        """The error of the channel as one of a candidate that had this time to answer."""
        if isinstance(error, Closed):
            return self._supervisor.why_ended() or Broken("it closed its channel")
        if isinstance(error, Late):
            with suppress(Ended):
                self._supervisor.report()
                self.faults.line(REPORT_SECONDS)
            if isinstance(error, _Waits):
                return TimedOut(*error.args, asleep=self.device == "cpu")
            return TimedOut(_seconds(timeout))
        return Broken(str(error))

    def _patiently(self, patience: Patience) -> dict[str, Any]:
        """Its answer. Errors as `Channel.receive`."""
        left, waits = patience.seconds, 0.0
        use = CpuUse(self.pid) if self.device == "cpu" else GpuUse(self.pid)
        look = LOOK if self.device == "cpu" else min(LOOK, patience.usual / LOOKS)
        while True:
            began = time.monotonic()
            try:
                answer = self._channel.receive(min(look, left))
                self.charged += time.monotonic() - began
                return answer
            except Late:
                elapsed = time.monotonic() - began
                charge, waited = use.since(elapsed)
                self.charged += charge
                left, waits = left - charge, 0.0 if waited is None else waits + waited
                long = waits > patience.usual
                if long or (left <= 0 and waited is not None and self.device == "cpu"):
                    raise _Waits(patience.usual if long else round(waits)) from None
                if left <= 0:
                    raise
                patience.pause()


def _seconds(timeout: float | Patience) -> float:
    return timeout.seconds if isinstance(timeout, Patience) else timeout


@contextmanager
def awake(worker: Worker) -> Iterator[None]:
    """Lets a stopped process run inside; `Worker.settle` waits for either change."""
    worker.freeze(False, wait=False)
    try:
        yield
    finally:
        worker.freeze(True, wait=False)


@contextmanager
def asleep(worker: Worker, wait: bool = True) -> Iterator[None]:
    """Stops every process of a candidate inside; one that is gone is noticed later.

    Args:
        worker: The candidate.
        wait: Whether to wait until it has stopped before others get what it used.
    """
    with suppress(CandidateError):
        worker.freeze(True, wait)
    try:
        yield
    finally:
        worker.freeze(False, wait=False)


@contextmanager
def ended_on_error(worker: Worker) -> Iterator[None]:
    """Ends a candidate that fails inside. In the lane, it ends before others get the device.

    Stopping its process would not do: a kernel that hangs ends only with its process.
    """
    try:
        yield
    except CandidateError:
        worker.close()
        raise
