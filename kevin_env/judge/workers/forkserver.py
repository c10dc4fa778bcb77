"""The fork server: torch and triton imported once, then one fork per candidate.

It holds no secret and never touches CUDA. For each order it forks a keeper, the first process of
the candidate's namespaces, which forks the candidate itself. The keeper is trusted: it outlives the
candidate, tells the judge how the candidate ended, stops and continues it, watches its memory and
processes, and kills all of it when the judge hangs up. Run as `python -m kevin_env.judge.workers.forkserver
FD LEVEL` with a scrubbed environment; LEVEL is the best level of the sandbox that is tried.
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

from kevin_env.candidate import interpreter
from kevin_env.candidate.wire import Channel, Closed
from kevin_env.judge.sandbox import levels, namespaces, privileges, root
from kevin_env.judge.sandbox.groups import Group
from kevin_env.judge.sandbox.levels import Level
from kevin_env.judge.workers import supervisor as keeper


def main() -> None:
    """Imports, then forks until the judge hangs up."""
    orders = Channel(socket.socket(fileno=int(sys.argv[1])), takes_fds=True)
    level = levels.find(sys.argv[2])  # type: ignore[arg-type]
    privileges.have_descriptors()
    _import_all()
    privileges.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's to handle
    warnings.filterwarnings(
        "ignore", "This process", DeprecationWarning
    )  # idle threads of libraries hold no locks
    gc.freeze()
    with contextlib.suppress(Closed):
        orders.send({"ready": True})
        while True:
            _follow(orders, level)


def _follow(orders: Channel, level: Level) -> None:
    """Does the next order. Raises `Closed` when the judge has hung up."""
    order = orders.receive()
    if "warm" in order:
        _warm(order["warm"])
        gc.freeze()
        orders.send({"ready": True})
        return
    fds = orders.take_fds()
    if os.fork() == 0:
        orders.close()
        _start(order, level, *fds)
    for fd in fds:
        os.close(fd)


def _import_all() -> None:
    for name in ("torch.utils.cpp_extension", "kevin_env.candidate.runtime"):
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.language")
        if os.environ.get("TRITON_INTERPRET"):
            interpreter.complete()


def _warm(capability: str) -> None:
    with contextlib.suppress(
        Exception
    ):  # Triton is not there, or not whole: a submission that needs it will say so
        importlib.import_module("kevin_env.judge.workers.warm").warm_triton(
            int(capability.replace(".", ""))
        )
    with contextlib.suppress(Exception):  # nor then is anything compiled beforehand
        importlib.import_module("kevin_env.candidate.fake_cuda").warm()


def _start(
    order: dict[str, Any], level: Level, channel: int, lifeline: int, log: int, faults: int
) -> None:
    """In the first fork: sets up namespaces and forks the keeper into them. Does not return."""
    folder = Path(order["folder"])
    scratch: tuple[Path, ...] = (folder,)
    try:
        os.setsid()
        group = Group(folder.name, order["memory"])
        if level.namespaces:
            namespaces.enter(level.user, level.processes)
            if order["tools"]:
                with contextlib.suppress(
                    OSError
                ):  # then tools that need it say that they cannot connect
                    namespaces.raise_loopback()
        if os.fork() != 0:
            os._exit(0)
        order["pid"] = int(
            str(Path("/proc/self").readlink())
        )  # as the judge sees it: /proc is still the judge's
        if level.namespaces:
            scratch = root.change_root(folder, order["memory"], level.processes)
        keeper.keep(order, level, group, scratch, channel, lifeline, log, faults)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(log, f"the sandbox failed: {error!r}\n".encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
