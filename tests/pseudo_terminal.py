"""A program in a real pseudo-terminal: keys go in, what it writes comes out."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 90.0
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """A running program and what it wrote."""

    def __init__(self, master: int, slave: int, process: subprocess.Popen[bytes]) -> None:
        self.master, self.slave, self.process = master, slave, process
        self.raw = ""

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, words: str) -> str:
        """What was written until these words, which must come after all that was waited for before."""
        end, start = time.monotonic() + LONGEST, len(self.raw)
        while time.monotonic() < end:
            if words in _CODES.sub("", self.raw[start:]):
                return self.raw[start:]
            self._read()
        raise AssertionError(f"{words!r} did not appear; the screen wrote {self.raw[start:]!r}")

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> int:
        """Closes the terminal, without a signal; how the program ends."""
        os.close(self.master)
        self.master = os.open(os.devnull, os.O_RDONLY)
        return self.process.wait(LONGEST)

    def end(self) -> int:
        """How it ends. It is read meanwhile: one whose terminal is full waits for its reader."""
        end = time.monotonic() + LONGEST
        while (code := self.process.poll()) is None and time.monotonic() < end:
            self._read()
        while self._read():
            pass
        return self.process.wait(0.1) if code is None else code

    def _read(self) -> bool:
        """Reads what there is; whether there was something within a tenth of a second."""
        if not select.select([self.master], [], [], 0.1)[0]:
            return False
        self.raw += os.read(self.master, 65536).decode(errors="replace")
        return True


@contextmanager
def run_python(
    *words: str, columns: int = 80, rows: int = 24, **environment: str
) -> Iterator[Screen]:
    """Runs Python with these arguments while the block runs."""
    master, slave = pty.openpty()
    known = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    screen = Screen(master, slave, None)  # type: ignore[arg-type]
    screen.resize(columns, rows)
    screen.process = subprocess.Popen(
        [sys.executable, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=known | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | environment,
    )
    try:
        yield screen
    finally:
        screen.process.kill()
        screen.process.wait()
        os.close(screen.master)
        os.close(screen.slave)
