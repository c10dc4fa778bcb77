"""The fork server: torch and triton imported once, then one fork per candidate.

It holds no secret and never touches CUDA. For each order it forks a keeper, the first process of the candidate's
namespaces, which forks the candidate itself. The keeper is trusted: it outlives the candidate, tells the judge how the
candidate ended, stops and continues it, watches its memory and processes, and kills all of it when the judge hangs up.
Run as `python -m kevin_env.judge.forkserver FD` with a scrubbed environment.
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

from kevin_env.candidate.wire import Channel, Closed
from kevin_env.judge import keeper, sandbox


def main() -> None:
    """Imports, then forks until the judge hangs up."""
    orders = Channel(socket.socket(fileno=int(sys.argv[1])), takes_fds=True)
    _import_all()
    sandbox.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's to handle
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # idle threads of libraries hold no locks
    gc.freeze()
    orders.send({"ready": True})
    while True:
        try:
            order = orders.receive()
        except Closed:
            return
        fds = orders.take_fds()
        if os.fork() == 0:
            orders.close()
            _start(order, *fds)
        for fd in fds:
            os.close(fd)


def _import_all() -> None:
    for name in ("torch.utils.cpp_extension", "kevin_env.candidate.runtime"):
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.language")


def _start(order: dict[str, Any], channel: int, lifeline: int, log: int) -> None:
    """In the first fork: sets up namespaces and forks the keeper into them. Does not return."""
    report: dict[str, str] = dict.fromkeys(sandbox.PROTECTIONS, "missing")
    folder = Path(order["folder"])
    scratch: tuple[Path, ...] = (folder,)
    try:
        os.setsid()
        with contextlib.suppress(sandbox.Refused, OSError):
            sandbox.enter_namespaces()
            report["network"] = "enforced"
        if os.fork() != 0:
            os._exit(0)
        if report["network"] == "enforced":
            scratch = sandbox.mount_private(folder)
            report["processes"] = "enforced"
        keeper.keep(order, report, scratch, channel, lifeline, log)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(log, f"the sandbox failed: {error!r}\n".encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
