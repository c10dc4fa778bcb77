"""At which line of a submission its process crashed or hung, as `faulthandler` in that process
reports it: a claim.
"""

import os
import re
import select
import time

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
