"""The fork server: torch and triton are imported once, then each candidate is a fork.

It holds no secret and never touches CUDA. For each order it forks a supervisor, the first process
of the candidate's namespaces, which forks the candidate. The supervisor is trusted: it outlives the
candidate, reports how it ended, stops and continues it, watches its memory and processes, and kills
all of it when the judge hangs up.

Run as `python -m kevin_env.judge.workers.forkserver FD LEVEL MODULE [PLACE...]` with a scrubbed
environment; LEVEL is the best sandbox level to try, MODULE a language to import (or empty), and
candidates may read the places.
"""

import contextlib
import faulthandler
import gc
import importlib
import os
import signal
import socket
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from kevin_env.candidate import guard, interpreter
from kevin_env.candidate.wire import Channel, Closed
from kevin_env.judge.cache_file import cache_folder
from kevin_env.judge.sandbox import filesystem, levels, seccomp, system
from kevin_env.judge.sandbox.attempts import exceed, withstood
from kevin_env.judge.sandbox.cgroups import Group
from kevin_env.judge.sandbox.levels import Level
from kevin_env.judge.sandbox.readable import Readable, find_readable
from kevin_env.judge.sandbox.system import Refused
from kevin_env.judge.workers.supervisor import MAX_PROCESSES, REPORT, Watch, kill_all

FEW_PROCESSES = 16
"""The limit of a candidate that tries to exceed it."""


class _Descriptors(NamedTuple):
    """What the judge sends with an order: two channels, and the pipes for log and faults."""

    channel: int
    supervisor: int
    log: int
    faults: int


def main() -> None:
    """Imports, then forks until the judge hangs up."""
    orders = Channel(socket.socket(fileno=int(sys.argv[1])), takes_fds=True)
    readable = find_readable(sys.argv[4:])
    level = levels.find(readable, sys.argv[2])  # type: ignore[arg-type]
    system.have_descriptors()
    _import_all(sys.argv[3])
    system.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's to handle
    # forking with threads: idle threads of libraries hold no locks
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)
    gc.freeze()
    with contextlib.suppress(Closed):
        orders.send({"ready": True})
        while True:
            _follow(orders, level, readable)


def _follow(orders: Channel, level: Level, readable: Readable) -> None:
    """Carries out the next order. Raises `Closed` when the judge has hung up."""
    order = orders.receive()
    if "warm" in order:
        _warm(order["warm"])
        gc.freeze()
        orders.send({"ready": True})
        return
    fds = orders.take_fds()
    if os.fork() == 0:
        orders.close()
        _start(order, level, readable, _Descriptors(*fds))
    for fd in fds:
        os.close(fd)
    orders.send({"ready": True})


def _import_all(module: str) -> None:
    for name in ("torch.utils.cpp_extension", "kevin_env.candidate.runtime"):
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.language")
        if os.environ.get("TRITON_INTERPRET"):
            interpreter.complete()
    if os.environ.get("TRITON_INTERPRET"):  # on a CPU
        guard.load(cache_folder())
    if module:
        with contextlib.suppress(Exception):  # a submission that needs it reports that itself
            importlib.import_module(module)


def _warm(capability: str) -> None:
    # warming is optional: without Triton, a submission that needs it reports that itself
    with contextlib.suppress(Exception):
        warm = importlib.import_module("kevin_env.judge.workers.warm")
        warm.warm_triton(int(capability.replace(".", "")))
    with contextlib.suppress(Exception):
        importlib.import_module("kevin_env.candidate.fake_cuda").warm()
    # TVM's first error reads the symbols of all libraries for a second, as a hanging kernel waits
    with contextlib.suppress(Exception):
        if "tvm_ffi" in sys.modules:
            sys.modules["tvm_ffi"].load_module(os.devnull)


def _start(order: dict[str, Any], level: Level, readable: Readable, fds: _Descriptors) -> None:
    """In the first fork: sets up namespaces and forks the supervisor into them. Does not return."""
    folder = Path(order["folder"])
    scratch: tuple[Path, ...] = (folder,)
    order["server"] = os.getppid()
    try:
        os.setsid()
        if "level" in order:  # only tests ask for one
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # each is tried in a child
            level = levels.find(readable, order["level"])
        group = Group(order["groups"], order["memory"])
        if level.namespaces:
            system.enter_namespaces(level.user, level.processes)
            if order["tools"]:
                with contextlib.suppress(OSError):  # the tools then report that they cannot connect
                    system.raise_loopback()
        if os.fork() != 0:
            os._exit(0)
        # the pid in the judge's namespace: /proc is still the judge's
        order["pid"] = int(str(Path("/proc/self").readlink()))
        if level.namespaces:
            scratch = filesystem.change_root(
                readable, folder, order["memory"], level.processes, order["gpu"]
            )
        _supervise(order, level, readable, group, scratch, fds)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(fds.log, f"the sandbox failed: {error!r}\n".encode())
    finally:
        os._exit(1)


def _supervise(
    order: dict[str, Any],
    level: Level,
    readable: Readable,
    group: Group,
    scratch: tuple[Path, ...],
    fds: _Descriptors,
) -> None:
    """Forks the candidate and watches it until it or the judge is gone. Does not return."""
    isolated = level.processes and os.getpid() == 1  # else signals would reach the whole machine
    # otherwise its memory and descriptors are protected by its capabilities, which a candidate has
    # given up, and by Landlock: an ordinary user's supervisor without namespaces may have neither
    system.set_dumpable(False)
    system.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(fds.supervisor)
        os.close(reader)
        group.close()
        _become_candidate(order, level, readable, scratch, fds, writer)
    for fd in (fds.channel, fds.log, fds.faults, writer):
        os.close(fd)
    group.admit(pid)  # while it sets itself up
    judge = Channel(socket.socket(fileno=fds.supervisor))
    with os.fdopen(reader) as pipe:
        held = pipe.read().split()  # written before anything of the submission is there
    rank = system.oom_rank(pid)  # before the judge hears of it and sends the submission
    judge.send({"held": held, "pid": order["pid"], "level": level.name})
    processes = FEW_PROCESSES if order["attempt"] == "processes" else MAX_PROCESSES
    try:
        Watch(
            judge=judge, pid=pid, memory=order["memory"], processes=processes, group=group,
            folder=scratch[0], in_memory=level.namespaces, isolated=isolated, rank=rank,
        ).run()  # fmt: skip
    finally:
        kill_all(isolated)
        os._exit(0)


def _become_candidate(
    order: dict[str, Any],
    level: Level,
    readable: Readable,
    scratch: tuple[Path, ...],
    fds: _Descriptors,
    writer: int,
) -> None:
    """Closes the sandbox, then serves. Does not return. Nothing of the submission is here yet."""
    try:
        system.set_dumpable(True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        faulthandler.enable(fds.faults)
        guard.report_to(fds.faults)
        faulthandler.register(REPORT, fds.faults)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (fds.log, 1), (fds.log, 2)):
            os.dup2(source, target)
        os.close(fds.log)
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # cached by the fork server
        os.chdir(order["folder"])
        _close_sandbox(level, readable, scratch, order)
        held = withstood(order["targets"], order["server"], order["attempt"] == "everything")
        os.write(writer, " ".join(held).encode())
        os.close(writer)
        if order["attempt"] == "processes":
            exceed("processes", FEW_PROCESSES)
        if order["attempt"] == "memory":
            exceed("memory", order["memory"])
        from kevin_env.candidate.runtime import Runtime

        Runtime(Channel(socket.socket(fileno=fds.channel), takes_fds=True)).serve()
    finally:
        os._exit(0)


def _close_sandbox(
    level: Level, readable: Readable, scratch: tuple[Path, ...], order: dict[str, Any]
) -> None:
    """Takes the steps that a process takes for itself, as far as the kernel allows them.

    What they protect is tried afterwards.
    """
    system.limit_resources()
    tools, device = order["tools"] and level.namespaces, order["device"]
    if level.landlock:
        with contextlib.suppress(Refused):
            filesystem.restrict(readable, scratch, device, level.processes, tools, order["gpu"])
    with contextlib.suppress(Refused):
        system.drop_privileges()
    with contextlib.suppress(Refused):
        internet = (socket.AF_INET,) if tools else ()
        seccomp.restrict(level.namespaces, level.processes, device, internet)


if __name__ == "__main__":
    main()
