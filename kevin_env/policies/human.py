"""A person as the policy: a path, an editor, or text that is typed in."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kevin_env.extract import fenced
from kevin_env.outcome import printable
from kevin_env.policies.base import OnText, Quit
from kevin_env.record import Message, Reply

_ASK = (
    "\nGive the path of a .py file, `edit` for an editor, "
    "or the reply itself and then a line with one dot.\n"
)


class HumanPolicy:
    """Shows the newest user message and takes a reply from a person, one at a time.

    Args:
        source: where lines are read; by default stdin.
        screen: where the message is shown; by default stderr, since stdout is for results.
    """

    name = "human"

    def __init__(self, source: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._source = source or sys.stdin
        self._screen = screen or sys.stderr
        self._draft = ""
        self._lock = threading.Lock()

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """Asks until there is a reply.

        Raises:
            Quit: at the end of the input.
        """
        with self._lock:
            self._show(printable(messages[-1].content) + "\n")
            while True:
                self._show(_ASK)
                try:
                    return Reply(content=self._read())
                except (OSError, UnicodeDecodeError) as error:
                    self._show(f"That did not work: {error}\n")

    def _read(self) -> str:
        first = self._source.readline()
        if not first:
            raise Quit("the input has ended")
        word = first.strip()
        if word == "edit":
            before, self._draft = self._draft, edited(self._draft)
            if self._draft == before:
                raise OSError("the file was not changed, so nothing is submitted")
            return fenced(self._draft)
        if word.endswith(".py"):
            self._draft = Path(word).expanduser().read_text(encoding="utf-8")
            return fenced(self._draft)
        self._show("End the reply with a line that has only a dot.\n")
        lines = [first]
        while (line := self._source.readline()) and line.strip() != ".":
            lines.append(line)
        return "".join(lines)

    def _show(self, text: str) -> None:
        self._screen.write(text)
        self._screen.flush()


def edited(draft: str) -> str:
    """Lets a person edit the draft in $VISUAL or $EDITOR, by default vi, on a free terminal.

    Raises:
        OSError: if the editor cannot be run, fails, or writes no readable text.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="kevin-env-") as folder:
        file = Path(folder) / "kernel.py"  # by name, since some editors replace the file
        file.write_text(draft, encoding="utf-8")
        try:
            with _ignore_ctrl_c():
                subprocess.run([*shlex.split(editor), str(file)], check=True)
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise OSError(
                f"the editor failed, set $EDITOR to another: {editor}: {error}"
            ) from error


@contextmanager
def _ignore_ctrl_c() -> Iterator[None]:
    """Ignores Ctrl-C in this process, since the terminal sends it to both."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(
        signal.SIGINT, lambda *_: None
    )  # unlike SIG_IGN, the editor does not inherit it
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
