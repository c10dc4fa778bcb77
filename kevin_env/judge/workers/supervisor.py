"""The supervisor: the first process of a candidate's namespaces, and the only trusted one there.

It shares the candidate's namespaces so that `kill(-1)` reaches everything that the submission
started, and nothing else: `isolated` in this module. Without namespaces it is the subreaper of the
candidate and finds its descendants in /proc.
"""

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.sandbox.cgroups import Group
from kevin_env.judge.sandbox.filesystem import SCRATCH_SIZE
from kevin_env.judge.sandbox.system import oom_rank
from kevin_env.judge.workers.usage import descendants, more_memory_than, stored, threads


def signal_all(number: int, isolated: bool) -> None:
    """Sends a signal to every supervised process.

    In a process namespace none is missed: the kernel lets no process fork meanwhile.
    """
    if isolated:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _ranks(processes: list[int]) -> list[int]:
    """How early the kernel would kill each for lack of memory."""
    return [rank for rank in map(oom_rank, processes) if rank is not None]


def kill_all(isolated: bool) -> None:
    """Kills until nothing is left. The end of a namespace's first process would do so, too."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        signal_all(signal.SIGKILL, isolated)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


WATCH_SECONDS = 0.25
REPORT = signal.SIGUSR1
"""Makes a candidate write the stacks of its threads to its fault pipe, even in native code."""
MAX_PROCESSES = 512
MAX_THREADS = 2048


@dataclass
class Watch:
    """Supervises a candidate until it ends or the judge hangs up.

    Attributes:
        judge: The channel to the judge.
        pid: The candidate.
        memory: Bytes that it may use.
        processes: How many it may have.
        group: Its control group.
        folder: Its writable folder.
        in_memory: Whether that is a file system in memory.
        isolated: Whether it has a process namespace.
        rank: How early the kernel was to kill it for lack of memory when it began; None if that is
            unknown.
    """

    judge: Channel
    pid: int
    memory: int
    processes: int
    group: Group
    folder: Path
    in_memory: bool
    isolated: bool
    rank: int | None
    _lent: dict[str, int] = field(default_factory=dict[str, int])
    _looked: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Watches, and reports the end to the judge."""
        ended = os.pidfd_open(self.pid)
        while True:
            readable, _, _ = select.select([self.judge.sock, ended], [], [], WATCH_SECONDS)
            if ended in readable:
                _, status = os.waitpid(self.pid, 0)
                limit = self._memory_limit() if self.group.ran_out() else None
                self.judge.send(
                    {"limit": limit} if limit else {"ended": os.waitstatus_to_exitcode(status)}
                )
                return
            self._reap()
            try:
                look = True
                while self.judge.pending():  # orders that are not waited for come together
                    look = self._obey(self.judge.receive())
            except WireError:  # the judge is gone, or has no more orders
                return
            limit = self._broken_limit() if look else None
            if limit is not None:
                self.judge.send({"limit": limit})
                return

    def _reap(self) -> None:
        """Reaps ended orphans, which would otherwise count as processes."""
        every = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (ended := os.waitid(os.P_ALL, 0, every)) is not None and ended.si_pid != self.pid:
            os.waitpid(ended.si_pid, 0)

    def _obey(self, order: dict[str, Any]) -> bool:
        """Obeys one order. Returns whether this is the time to check the limits.

        Raises:
            Closed: if there is nothing more to watch.
        """
        if "lent" in order:
            self._lent[order["lent"]] = order["size"]
        elif "report" in order:
            os.kill(self.pid, REPORT)
        elif "end" in order:
            self.judge.send({"limit": order["end"]})
            raise Closed
        else:
            signal_all(signal.SIGSTOP if order["freeze"] else signal.SIGCONT, self.isolated)
        self.judge.send({"done": True})
        # a timed call may be under way while it runs, so limits are checked when it stops
        return bool(order.get("freeze")) and time.monotonic() >= self._looked + WATCH_SECONDS

    def _broken_limit(self) -> str | None:
        self._looked = time.monotonic()
        processes = list(descendants(os.getpid()))
        if len(processes) > self.processes:
            return f"more than {self.processes} processes"
        if threads(processes) > MAX_THREADS:
            return f"more than {MAX_THREADS} threads"
        # where a file of /proc can be written: with CUDA, and without Landlock
        if self.rank is not None and any(rank < self.rank for rank in _ranks(processes)):
            return "a lower oom_score_adj than it was given"
        files = stored(self.folder, self.in_memory)
        if not self.in_memory and files > SCRATCH_SIZE:
            return f"more than {SCRATCH_SIZE >> 30} GiB of files"
        allowed = self.memory + sum(self._lent.values()) - (files if self.in_memory else 0)
        if self.group.ran_out() or more_memory_than(allowed, processes):
            return self._memory_limit()
        return None

    def _memory_limit(self) -> str:
        return f"more than {self.memory >> 20} MiB of memory"
