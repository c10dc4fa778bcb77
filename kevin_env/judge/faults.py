"""Where a submission's process is or crashed, as `faulthandler` in that process reports it: a claim."""

import os
import re
import select
import time
from collections.abc import Callable

LIMIT = 1 << 16
"""Bytes that are read of such reports, as many as a pipe holds."""
_FRAME = re.compile(r'File "([^"]*)", line (\d{1,7}) in (\S+)')
_LOOP = re.compile(r'File "[^"]*/candidate/runtime\.py", line \d+ in serve\b')
"""What calls the function of an order."""
_OURS = re.compile(r"/kevin_env/candidate/|/torch/(?!_dynamo/|_inductor/)")
"""Files whose functions may wait for the device and compile nothing themselves, as the submission's."""
_LAUNCHES = re.compile(r"/triton/(compiler/compiler\.py _init_handles|backends/nvidia/driver\.py __call__)$")
"""Triton's functions that hand a finished kernel to the driver, which may wait there for kernels before it."""


class Faults:
    """A pipe for the reports of one candidate. Neither end blocks: a full pipe must not turn a crash into a hang.

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
        """The innermost line in the submission's file; None where no report has come within so many seconds."""
        self._read(lambda: self._line() is not None, seconds)
        return self._line()

    def compiles(self, seconds: float) -> bool:
        """Whether a call compiles, tunes or imports: runs code that is neither the submission's nor torch's own.

        Not where no report has come within so many seconds: the process waits inside the kernel.
        """
        self._read(lambda: _LOOP.search(self._thread) is not None, seconds)
        frames = _FRAME.findall(_LOOP.split(self._thread)[0])
        self._report = ""  # a crash later on has a report of its own
        launches = any(_LAUNCHES.search(f"{path} {name}") for path, _, name in frames[:1])
        return not launches and any(path != self._path and not _OURS.search(path) for path, _, _ in frames)

    def close(self) -> None:
        """Nothing is read any more; what was found before is still known. Twice is fine."""
        if self._reader >= 0:
            self.line()
            os.close(self._reader)
        self._reader = -1

    def _read(self, enough: Callable[[], bool], seconds: float) -> None:
        """Reads what is reported within so many seconds, until it is enough."""
        poll, deadline = select.poll(), time.monotonic() + seconds
        if self._reader >= 0:
            poll.register(self._reader, select.POLLIN)
        while not enough() and len(self._report) < LIMIT and self._reader >= 0:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1e3)
            if not ready or not (chunk := os.read(self._reader, LIMIT)):
                break
            self._report += chunk.decode(errors="replace")

    def _line(self) -> int | None:
        return next((int(line) for path, line, _ in _FRAME.findall(self._thread) if path == self._path), None)

    @property
    def _thread(self) -> str:
        """The frames of the current thread, innermost first; of all threads where a crash was in none of Python's."""
        return self._report.rpartition("Current thread")[2]
