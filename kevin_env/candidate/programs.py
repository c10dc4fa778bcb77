"""Programs that run where the submission is confined: profilers, sanitizers, disassemblers, the
submission itself.

A program may stop at points on its way until it is told to go on. Files in its folder are all that
is between it and who tells it: descriptors may not outlive a tool that starts it. The submission
can make such files, too. All it has of that is to go on at once, or to be taken for further than it
is: every part of its way has a limit, whatever it says.
"""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from kevin_env.candidate import commands

Message = dict[str, Any]


def hold(folder: Path, point: str) -> None:
    """In the program: says that it has come to a point, and waits for the word to go on."""
    (folder / f"at-{point}").touch()
    while not (folder / f"past-{point}").exists():
        time.sleep(commands.STEP)


class Program:
    """A command in a session of its own, beside this process.

    Args:
        command: The program and its arguments.
        environment: Variables besides those of this process.

    Raises:
        OSError: when it cannot be started.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._output = Path(f"output-{time.monotonic_ns()}")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def follow(self, seconds: float, limit: int, past: str = "", to: str = "") -> Message:
        """Lets it go past a point and waits until it is at the next one, ends, or is late.

        Args:
            seconds: After which all of its session is killed.
            limit: Bytes of output that are told.
            past: The point that it may leave; empty when it is at none.
            to: The point that is waited for; empty for its end.

        Returns:
            `at`, the point; or how it ended: `code`, None when it was killed for being late, and
            `output`, stdout and stderr together.
        """
        if past:
            Path(f"past-{past}").touch()
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None and time.monotonic() < deadline:
            if to and Path(f"at-{to}").exists():
                return {"at": to}
            time.sleep(commands.STEP)
        commands.kill_session(self._process.pid)
        self._process.wait()
        text = commands.read(str(self._output), limit)
        self._output.unlink(missing_ok=True)
        return {"code": code, "output": text}


class Orders:
    """Orders to a candidate that are about programs and files; every public method is one."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}

    def begin(self, name: str, command: list[str], environment: dict[str, str]) -> Message:
        """Starts a program under a name; others may run meanwhile."""
        self._programs[name] = Program(command, environment)
        return {}

    def follow(
        self, name: str, seconds: float, limit: int, past: str = "", to: str = ""
    ) -> Message:
        """See `Program.follow`."""
        return self._programs[name].follow(seconds, limit, past, to)

    def run(
        self, command: list[str], seconds: float, environment: dict[str, str], limit: int
    ) -> Message:
        """Runs a program to its end; see `Program.follow`."""
        return Program(command, environment).follow(seconds, limit)

    def write(self, path: str, text: str) -> Message:
        """Writes a file."""
        Path(path).write_text(text, encoding="utf-8")
        return {}

    def read(self, path: str, limit: int) -> Message:
        """The beginning of a file."""
        return {"text": commands.read(path, limit)}

    def artefacts(self, folder: str) -> Message:
        """Files with machine code for the device that lie in a folder."""
        return {"files": commands.artefacts(Path(folder))}
