"""Torch's call of ninja, which ends the other compilers as soon as one has failed.

An error in a CUDA source is known after seconds; without this it is told when the C++ source beside
it, which includes all of torch's headers, has been compiled to the end.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import NoReturn

from torch.utils import cpp_extension

NICENESS = 10
"""How much lower the priority of compilers is than that of who is timed."""
GRACE = 0.2
"""Seconds for ninja to print what the compiler that failed has said."""


def gently(command: list[str]) -> list[str]:
    """The command at a lower priority, where that can be had: whoever is timed meanwhile comes
    first.
    """
    nice = shutil.which("nice")
    return [nice, "-n", str(NICENESS), *command] if nice else command


def run_ninja_build(build_directory: str, verbose: bool, error_prefix: str) -> None:
    """Builds what `build.ninja` in a folder says, like the function of torch that it stands in for.

    Raises:
        RuntimeError: when a compiler fails; its cause carries what all of them printed, also when
            that was shown.
    """
    workers = cpp_extension._get_num_workers(verbose)
    command = gently(["ninja", "-v", *(["-j", str(workers)] if workers is not None else ())])
    sys.stdout.flush()
    sys.stderr.flush()
    with subprocess.Popen(
        command, cwd=build_directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as ninja:
        output = _read(ninja, verbose)
    if ninja.returncode:
        raise_error(error_prefix, command, output, shown=verbose)


def raise_error(error_prefix: str, command: list[str], output: bytes, shown: bool) -> NoReturn:
    """Raises what torch raises when ninja has failed, the output in its text unless that was shown
    already.
    """
    text = (
        f"{error_prefix}: {output.decode(errors='replace')}"
        if output and not shown
        else error_prefix
    )
    raise RuntimeError(text) from subprocess.CalledProcessError(1, command, output)


def _read(ninja: "subprocess.Popen[bytes]", verbose: bool) -> bytes:
    lines: list[bytes] = []
    failed = False
    assert ninja.stdout is not None
    for line in ninja.stdout:
        lines.append(line)
        if verbose:
            os.write(1, line)
        if line.startswith(b"FAILED: ") and not failed:
            failed = True
            threading.Timer(GRACE, ninja.send_signal, (signal.SIGINT,)).start()
    return b"".join(lines)
