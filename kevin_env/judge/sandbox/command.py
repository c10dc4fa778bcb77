"""Runs a command in the sandbox, with the machine's network: a coding agent.

`python -m kevin_env.judge.sandbox.command FD REQUIRED SCRATCH FOLDER COMMAND...` writes to FD which
protections hold, as `attempts` found, and starts the command, unless a protection of REQUIRED
failed. It can write to FOLDER and to memory, has no GPU, sees no other process, and ends with this
one. On a machine without namespaces it runs without a sandbox. SCRATCH is an empty folder.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kevin_env.judge.sandbox import filesystem, levels, seccomp, system
from kevin_env.judge.sandbox.attempts import Canary, withstood
from kevin_env.judge.sandbox.readable import NAME, SCRATCH, Readable, check_named, find_readable

NETWORK = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/protocols", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies"),
)
"""What a network is used with."""
_SOCKETS = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_PARENT_DEATH = 1


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, and where."""

    command: Sequence[str]
    readable: Readable
    home: Path
    folder: Path
    report: int
    required: set[str]


def main() -> None:
    """Runs the command, and ends with its exit code."""
    report, required, scratch, folder, *command = sys.argv[1:]
    # By its name and what that links to: it may lie in a home, and no more of that is shown.
    program = Path(command[0])
    command[0] = str(program.parent.resolve() / program.name)
    named = (*NETWORK, command[0], str(program.resolve()), *check_named(None))
    readable = find_readable(named)
    level = levels.find(readable)
    if not level.processes:
        if required:
            sys.exit(f"this machine has no sandbox for it: {levels.describe(level)}")
        os.close(int(report))
        os.chdir(folder)
        _execute(command)
    root, hidden = Path(scratch, "root"), Path(scratch, "hidden")
    root.mkdir()
    hidden.mkdir()
    canary = Canary(hidden, readable)
    outside = os.getpid()
    system.enter_namespaces(level.user, level.processes, network=False)
    system.prctl(_PARENT_DEATH, signal.SIGKILL)
    keeper = os.fork()
    if keeper == 0:
        system.prctl(_PARENT_DEATH, signal.SIGKILL)
        filesystem.change_root(
            readable, root, filesystem.SCRATCH_SIZE, level.processes, "", (Path(folder),)
        )
        order = Order(command, readable, root, Path(folder), int(report), {*required.split()})
        _keep(os.fork(), order, canary, outside)
    os.close(int(report))
    sys.exit(_code(os.waitpid(keeper, 0)[1]))


def _keep(pid: int, order: Order, canary: Canary, outside: int) -> None:
    """Waits for the command, as the first process of its namespace. Does not return."""
    if pid == 0:
        _become(order, canary, outside)
    os.close(order.report)
    system.set_dumpable(False)
    while True:
        ended, status = os.wait()
        if ended == pid:  # the kernel ends all that it started
            os._exit(_code(status))


def _become(order: Order, canary: Canary, outside: int) -> None:
    """Closes the sandbox, tries it, and executes the command. Does not return."""
    os.environ |= {"HOME": str(order.home), "TMPDIR": "/tmp"}
    os.chdir(order.folder)
    own = (order.home, order.folder, *SCRATCH)
    system.limit_resources()
    with suppress(system.Refused):
        filesystem.restrict(order.readable, own, "cpu", own_proc=True, tools=True, gpu="")
    with suppress(system.Refused):
        system.drop_privileges()
    with suppress(system.Refused):
        seccomp.restrict(isolated=True, processes=True, device="cuda", internet=_SOCKETS)
    held = withstood(canary.targets, outside, everything=True)
    os.write(order.report, " ".join(held).encode())
    os.close(order.report)
    canary.close()
    if broken := order.required.difference(held):
        sys.exit(f"the sandbox does not hold here: {', '.join(sorted(broken))}")
    _execute(order.command)


def _execute(command: Sequence[str]) -> None:
    """Becomes the command. Does not return."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], [*command])
    except OSError as error:
        why = error.strerror
        if isinstance(error, FileNotFoundError):  # the program was found outside
            why = f"its interpreter is not there, or {NAME} has to name where it is"
        sys.exit(f"{command[0]} cannot be started: {why}")


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
