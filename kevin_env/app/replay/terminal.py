"""The terminal: keys as words, whole screens at once, everything as it was afterwards."""

import contextlib
import errno
import os
import re
import select
import sys
import termios
import tty
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from kevin_env.app.replay.state import USUAL, Size

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, no cursor, no wrapping at the edge."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_WAIT = 0.05
"""Seconds in which the rest of an escape sequence must follow, or it was the key Esc."""

_WORDS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "esc",
    "\x1b[Z": "shift-tab",
}
_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERS = {"1": "home", "4": "end", "5": "pgup", "6": "pgdn", "7": "home", "8": "end"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)


class Terminal:
    """Takes the terminal over while the block runs.

    Args:
        console: says what colours there are; NO_COLOR is respected by it.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._rest = b""
        self._shown: list[str] = []
        self._before: list[object] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)
        after = termios.tcgetattr(self._in)
        after[
            3
        ] &= ~termios.ISIG  # Ctrl-C and Ctrl-Z are keys: the terminal must not be left as it is now
        termios.tcsetattr(self._in, termios.TCSADRAIN, after)
        self._write(_ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Restores the terminal. That it went away is an end like any other."""
        with contextlib.suppress(
            OSError, termios.error
        ):  # a terminal that went away has nothing to be restored
            self._write(_LEAVE)
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
        return isinstance(error, OSError) and error.errno == errno.EIO

    @property
    def size(self) -> Size:
        """As it is now, whatever $COLUMNS says; the usual one where the terminal doesn't know."""
        columns, rows = os.get_terminal_size(self._out)
        return Size(columns, rows) if columns and rows else USUAL

    def keys(self, seconds: float) -> list[str]:
        """The keys that were pressed, after at most that long; empty when none was. `ctrl-c` when
        the terminal went.
        """
        if not self._ready(seconds):
            return []
        data = self._read()
        if not data:
            return ["ctrl-c"]
        while _unfinished(self._rest + data) and self._ready(_ESCAPE_WAIT):
            if not (more := self._read()):
                break
            data += more
        text, self._rest = _decoded(self._rest + data)
        return [word for found in _SEQUENCE.findall(text) if (word := key_name(found))]

    def draw(self, frame: Sequence[Text]) -> None:
        """Puts a screen up; only the lines that changed are written."""
        lines = [self._encoded(line) for line in frame]
        whole = len(lines) != len(self._shown)
        changed = [
            f"\x1b[{number};1H\x1b[0m{line}"
            for number, line in enumerate(lines, start=1)
            if whole or line != self._shown[number - 1]
        ]
        self._shown = lines
        if changed:
            self._write(("\x1b[2J" if whole else "") + "".join(changed))

    def forget(self) -> None:
        """The next screen is written whole: the terminal was resized."""
        self._shown = []

    def _encoded(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(
                line, end="", no_wrap=True, crop=False, overflow="ignore", soft_wrap=True
            )
        return captured.get()

    def _read(self) -> bytes:
        """What was typed; nothing when the terminal went away."""
        try:
            return os.read(self._in, 4096)
        except OSError:
            return b""

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._in], [], [], max(seconds, 0.0))[0])

    def _write(self, text: str) -> None:
        data = memoryview(text.encode(sys.stdout.encoding or "utf-8", "replace"))
        while data:
            data = data[os.write(self._out, data) :]


def key_name(sequence: str) -> str:
    """The name of a key: the character itself, or a word; empty for what has none."""
    if sequence in _WORDS:
        return _WORDS[sequence]
    if len(sequence) == 1:
        return f"ctrl-{chr(ord(sequence) + 96)}" if sequence < " " else sequence
    if sequence[-1] in _LETTERS:
        return _LETTERS[sequence[-1]]
    return _NUMBERS.get(sequence[2:-1], "") if sequence.endswith("~") else ""


def _unfinished(data: bytes) -> bool:
    """Whether an escape sequence or a character seems to go on."""
    return bool(re.search(rb"\x1b(\[[0-?]*[ -/]*|O)?$", data)) or len(_decoded(data)[1]) > 0


def _decoded(data: bytes) -> tuple[str, bytes]:
    """Text, and the bytes of a last character that is not whole."""
    for cut in range(1, min(3, len(data)) + 1):
        if data[-cut] >= 0xC0:
            need = 2 if data[-cut] < 0xE0 else 3 if data[-cut] < 0xF0 else 4
            if cut < need:
                return data[:-cut].decode("utf-8", "ignore"), data[-cut:]
            break
    return data.decode("utf-8", "ignore"), b""
