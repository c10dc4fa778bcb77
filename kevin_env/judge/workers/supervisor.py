"""The keeper: the first process of a candidate's namespaces, and the only one there that is ours.

It shares the candidate's namespaces so that `kill(-1)` reaches everything the submission started,
and nothing else. Where there are no namespaces it is the subreaper of the candidate, and finds the
descendants in /proc.
"""

import contextlib
import faulthandler
import os
import select
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.sandbox import calls, landlock, levels, privileges
from kevin_env.judge.sandbox.groups import Group
from kevin_env.judge.sandbox.levels import Level
from kevin_env.judge.sandbox.root import SCRATCH_SIZE
from kevin_env.judge.sandbox.system import Refused
from kevin_env.judge.workers.stopping import kill_all, signal_all, stop_all, watched
from kevin_env.judge.workers.usage import arrivals, descendants, more_memory_than, stored, threads

WATCH_SECONDS = 0.25
REPORT = signal.SIGUSR1
"""Has a candidate write the stacks of its threads to its pipe for faults, also while it is in
native code.
"""
MAX_PROCESSES = 512
MAX_THREADS = 2048
STRIKES = 3
STRIKE_SHARE = 0.02
"""How often a thread may have been given a processor after all were seen stopped, and in which
share of all the times that they were: one inside the kernel (D) meets the signal on its way out.
None was in 2000 stops on a busy machine.
"""


def keep(
    order: dict[str, Any], level: Level, group: Group, scratch: tuple[Path, ...], channel: int, lifeline: int, log: int,
    faults: int,
) -> None:  # fmt: skip
    """Forks the candidate and watches over it until it or the judge is gone. Does not return."""
    isolated = level.processes and os.getpid() == 1  # else signals would reach the whole machine
    privileges.set_dumpable(False)
    privileges.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(lifeline)
        os.close(reader)
        _become_candidate(order, level, group, scratch, channel, log, faults, writer)
    for fd in (channel, log, faults, writer):
        os.close(fd)
    group.admit(pid)  # while it sets itself up
    judge = Channel(socket.socket(fileno=lifeline))
    with os.fdopen(reader) as pipe:
        told = (
            pipe.read().split()
        )  # the steps that were taken; written before anything of the submission is there
    steps = {
        *told,
        *(("network", "root") if level.namespaces else ()),
        *(("processes",) if level.processes else ()),
    }
    judge.send({"sandbox": levels.protections(steps), "pid": order["pid"], "level": level.name})
    try:
        _Watch(judge, pid, order["memory"], group, scratch[0], level.namespaces, isolated).run()
    finally:
        kill_all(isolated)
        os._exit(0)


def _become_candidate(
    order: dict[str, Any], level: Level, group: Group, scratch: tuple[Path, ...], channel: int, log: int, faults: int,
    writer: int,
) -> None:  # fmt: skip
    """In the candidate, before anything of the submission: closes the sandbox, then serves. Does
    not return.
    """
    try:
        group.close()
        privileges.set_dumpable(True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        faulthandler.enable(faults)
        faulthandler.register(REPORT, faults)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(log)
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # the fork server's, which was remembered
        os.chdir(order["folder"])
        os.write(writer, " ".join(_close_sandbox(level, scratch, order)).encode())
        os.close(writer)
        from kevin_env.candidate.runtime import Runtime

        Runtime(Channel(socket.socket(fileno=channel), spin=order["spin"], takes_fds=True)).serve()
    finally:
        os._exit(0)


def _close_sandbox(
    level: Level, scratch: tuple[Path, ...], order: dict[str, Any]
) -> list[levels.Step]:
    """Takes the steps that a process takes for itself, and says which the kernel allowed."""
    privileges.limit_resources()
    taken: list[levels.Step] = ["limits"]
    tools = order["tools"] and level.namespaces
    if level.landlock:
        with contextlib.suppress(Refused):
            landlock.restrict(scratch, tcp=tools, children=tools and level.processes)
            taken.append("landlock")
            if landlock.scopes_signals():
                taken.append("signals")
    with contextlib.suppress(Refused):
        privileges.drop()
        taken.append("privileges")
    with contextlib.suppress(Refused):
        calls.restrict(level.namespaces, level.processes, order["device"], loopback=tools)
        taken.append("calls")
    return taken


class _Watch:
    """The keeper's life: until the candidate ends or the judge hangs up.

    Args:
        judge: The channel to it.
        pid: The candidate.
        memory: Bytes that it may use.
        group: Its control group.
        folder: Where it can write.
        in_memory: Whether that is a file system in memory.
        isolated: Whether it has a process namespace.
    """

    def __init__(
        self,
        judge: Channel,
        pid: int,
        memory: int,
        group: Group,
        folder: Path,
        in_memory: bool,
        isolated: bool,
    ) -> None:
        self._judge = judge
        self._pid = pid
        self._memory = memory
        self._group = group
        self._folder = folder
        self._in_memory = in_memory
        self._isolated = isolated
        self._lent: dict[str, int] = {}
        self._looked = time.monotonic()
        self._stood: dict[str, int] | None = None
        self._stops = self._strikes = 0
        self._ran = False

    def run(self) -> None:
        """Watches, and tells the judge of the end."""
        ended = os.pidfd_open(self._pid)
        while True:
            readable, _, _ = select.select([self._judge.sock, ended], [], [], WATCH_SECONDS)
            if ended in readable:
                _, status = os.waitpid(self._pid, 0)
                limit = self._memory_limit() if self._group.ran_out() else None
                self._judge.send(
                    {"limit": limit} if limit else {"ended": os.waitstatus_to_exitcode(status)}
                )
                return
            if (
                self._stood is None
            ):  # who stands still is compared with what was there when it was stopped
                self._reap()
            try:
                look = True
                while self._judge.pending():  # orders that are not waited for come together
                    look = self._obey(self._judge.receive())
            except WireError:  # it is gone, or has nothing more to ask
                return
            limit = self._broken_limit() if look else None
            if limit is not None:
                self._judge.send({"limit": limit})
                return

    def _reap(self) -> None:
        """Takes leave of orphans that have ended: they would count as processes for as long as the
        candidate lives.
        """
        every = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (ended := os.waitid(os.P_ALL, 0, every)) is not None and ended.si_pid != self._pid:
            os.waitpid(ended.si_pid, 0)

    def _obey(self, order: dict[str, Any]) -> bool:
        """One order of the judge. Says whether this is the time to look at what the candidate uses.

        Raises:
            Closed: when there is nothing more to watch.
        """
        if "lent" in order:
            self._lent[order["lent"]] = order["size"]
        elif "report" in order:
            os.kill(self._pid, REPORT)
        elif (limit := order.get("end") or self._freeze(order["freeze"])) is not None:
            self._judge.send({"limit": limit})
            raise Closed
        self._judge.send({"done": True, "ran": self._ran})
        # while it runs a window may be open; between two of them is the time
        return bool(order.get("freeze")) and time.monotonic() >= self._looked + WATCH_SECONDS

    def _freeze(self, frozen: bool) -> str | None:
        """Stops everything or lets it go on; the limit that was broken if it does not stop, or has
        not stood still.

        A stopped process can have itself continued, by a timer of the kernel's for one. No filter
        sees all such ways, but who runs was given a processor. Each thread is asked: a sum would
        shrink when one of them ends.
        """
        if frozen:
            stopped = stop_all(self._isolated, before_last_look=self._count)
            return None if stopped else "a process that does not stop"
        if self._stood is not None:
            self._stops += 1
            self._ran = arrivals(watched(self._isolated)) != self._stood
            self._strikes += self._ran
            if self._strikes > STRIKES + STRIKE_SHARE * self._stops:
                return "time in which it was to stand still"
        self._stood = None
        signal_all(signal.SIGCONT, self._isolated)
        return None

    def _count(self) -> None:
        """Notes how often each thread has run. Before it is seen to stand still: one that runs on
        gets no new one.
        """
        self._stood = arrivals(watched(self._isolated))

    def _broken_limit(self) -> str | None:
        self._looked = time.monotonic()
        processes = list(descendants(os.getpid()))
        if len(processes) > MAX_PROCESSES:
            return f"more than {MAX_PROCESSES} processes"
        if threads(processes) > MAX_THREADS:
            return f"more than {MAX_THREADS} threads"
        files = stored(self._folder, self._in_memory)
        if not self._in_memory and files > SCRATCH_SIZE:
            return f"more than {SCRATCH_SIZE >> 30} GiB of files"
        allowed = self._memory + sum(self._lent.values()) - (files if self._in_memory else 0)
        if self._group.ran_out() or more_memory_than(allowed, processes):
            return self._memory_limit()
        return None

    def _memory_limit(self) -> str:
        return f"more than {self._memory >> 20} MiB of memory"
