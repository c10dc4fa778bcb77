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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.sandbox.cgroups import Group
from kevin_env.judge.sandbox.filesystem import SCRATCH_SIZE
from kevin_env.judge.sandbox.system import LIBC, oom_rank
from kevin_env.judge.workers.usage import arrivals, descendants, more_memory_than, stored, threads

STOP_SECONDS = 5.0
STOP_PAUSE = 30e-6
LOOKS = 2
"""How often in a row everything must be seen stopped.

While /proc is read, a process that has not received its signal yet may continue one already seen.
"""
_TGKILL = {"x86_64": 234, "aarch64": 131}
_SPAWN = {"x86_64": (b"56", b"58", b"435"), "aarch64": (b"220", b"435")}
"""The numbers of clone, vfork and clone3."""


def signal_all(number: int, isolated: bool) -> None:
    """Sends a signal to every supervised process."""
    if isolated:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def stop_all(isolated: bool, before_last_look: Callable[[], None] = lambda: None) -> bool:
    """Stops everything and waits until it is stopped; False if it does not stop in time.

    What `before_last_look` records holds from then on: a process continued earlier is seen by the
    last look.

    SIGSTOP takes effect in a whole process only when one of its threads runs and sees it. A
    submission controls how long that takes: a thread of lowest priority may get the signal while
    others keep the cores busy.
    """
    deadline, looks = time.monotonic() + STOP_SECONDS, 0
    while time.monotonic() < deadline:
        signal_all(signal.SIGSTOP, isolated)
        moving = next(
            (threads for threads in map(_threads, watched(isolated)) if not _stopped(threads)), None
        )
        looks = looks + 1 if moving is None else 0
        if looks == LOOKS:
            return True
        if looks == LOOKS - 1:
            before_last_look()
        if moving is not None:  # a thread needs a core to see the signal: leave it this one
            _stop_each(moving)
            time.sleep(STOP_PAUSE)
    return False


def watched(isolated: bool) -> list[int]:
    """Every supervised process, without the supervisor."""
    if not isolated:
        return list(descendants(os.getpid()))
    return [
        int(place.name)
        for place in os.scandir("/proc")
        if place.name.isdigit() and place.name != "1"
    ]


def _stopped(threads: dict[str, str]) -> bool:
    """Whether none of a process's threads runs, nor can before it is continued."""
    states = set(threads.values())
    # once one thread is stopped, all others are about to be: one in the kernel (D) on its way out
    if states <= set("TtZX") or ("T" in states and states <= set("TtZXD")):
        return True
    return all(
        state in "ZX" or (state == "D" and _stop_pending(thread))
        for thread, state in threads.items()
    )


def _stop_each(threads: dict[str, str]) -> None:
    """Sends SIGSTOP to each thread of a process if one of them spawns.

    The signal for a process wakes one thread, which stops the others when it handles it; one that
    waits for a stopped child never does. A thread that waits in the kernel for a disk or a device
    continues by itself and has to be waited for: otherwise it would seem to have run while stopped.
    """
    if any(state == "D" and _spawns(thread) for thread, state in threads.items()):
        for thread in threads:
            _, _, pid, _, number = thread.split("/")
            LIBC.syscall(_TGKILL.get(os.uname().machine, -1), int(pid), int(number), signal.SIGSTOP)


def _threads(pid: int) -> dict[str, str]:
    """The state of each thread of a process by its path in /proc; none if it has ended."""
    try:
        return {thread.path: _state(thread.path) for thread in os.scandir(f"/proc/{pid}/task")}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def _ranks(processes: list[int]) -> list[int]:
    """How early the kernel would kill each for lack of memory."""
    return [rank for rank in map(oom_rank, processes) if rank is not None]


def _spawns(thread: str) -> bool:
    """Whether a thread waits in the kernel for its child to exec or end (vfork).

    No signal interrupts that: it lasts for as long as the child is stopped.
    """
    return _read(f"{thread}/syscall").partition(b" ")[0] in _SPAWN.get(os.uname().machine, ())


def _stop_pending(thread: str) -> bool:
    """Whether SIGSTOP is pending for this thread: it stops before it returns to its program.

    A signal pending for the process does not count: only the thread woken for it is sure to receive
    it.
    """
    # the thread's name comes first, chosen by itself: anything but a newline
    waiting = _read(f"{thread}/status").partition(b"\nSigPnd:\t")[2][:16]
    return bool(int(waiting or b"0", 16) >> (signal.SIGSTOP - 1) & 1)


def _read(file: str) -> bytes:
    """A file of /proc; empty if the thread has ended or the kernel does not report it."""
    with contextlib.suppress(OSError):
        return Path(file).read_bytes()
    return b""


def _state(thread: str) -> str:
    try:
        stat = os.open(f"{thread}/stat", os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return "X"
    try:
        return os.read(stat, 512).rpartition(b")")[2][1:2].decode()
    except ProcessLookupError:
        return "X"
    finally:
        os.close(stat)


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
STRIKES = 3
STRIKE_SHARE = 0.02
"""How often, and in which share of all stops, a thread may have run after all were seen stopped.

A thread in the kernel (state D) stops only when it leaves it. None ran in 2000 stops on a busy
machine.
"""


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
    """

    judge: Channel
    pid: int
    memory: int
    processes: int
    group: Group
    folder: Path
    in_memory: bool
    isolated: bool
    _rank: int | None = None
    _lent: dict[str, int] = field(default_factory=dict[str, int])
    _looked: float = field(default_factory=time.monotonic)
    _stood: dict[str, int] | None = None
    _stops: int = 0
    _strikes: int = 0
    _ran: bool = False

    def run(self) -> None:
        """Watches, and reports the end to the judge."""
        ended = os.pidfd_open(self.pid)
        self._rank = oom_rank(self.pid)
        while True:
            readable, _, _ = select.select([self.judge.sock, ended], [], [], WATCH_SECONDS)
            if ended in readable:
                _, status = os.waitpid(self.pid, 0)
                limit = self._memory_limit() if self.group.ran_out() else None
                self.judge.send(
                    {"limit": limit} if limit else {"ended": os.waitstatus_to_exitcode(status)}
                )
                return
            if self._stood is None:  # while stopped, processes are compared with those at the stop
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
        elif (limit := order.get("end") or self._freeze(order["freeze"])) is not None:
            self.judge.send({"limit": limit})
            raise Closed
        self.judge.send({"done": True, "ran": self._ran})
        # a timed call may be under way while it runs, so limits are checked when it stops
        return bool(order.get("freeze")) and time.monotonic() >= self._looked + WATCH_SECONDS

    def _freeze(self, frozen: bool) -> str | None:
        """Stops or continues everything. Returns the limit that was broken, if any.

        A stopped process can arrange to be continued, for example by a kernel timer. No filter
        catches every way, but a thread that ran was scheduled. Threads are counted one by one: a
        sum would shrink when a thread ends.
        """
        if frozen:
            stopped = stop_all(self.isolated, before_last_look=self._count)
            return None if stopped else "a process that does not stop"
        if self._stood is not None:
            self._stops += 1
            self._ran = arrivals(watched(self.isolated)) != self._stood
            self._strikes += self._ran
            if self._strikes > STRIKES + STRIKE_SHARE * self._stops:
                return "time in which it was to stand still"
        self._stood = None
        signal_all(signal.SIGCONT, self.isolated)
        return None

    def _count(self) -> None:
        """Records how often each thread has run, before it is seen stopped."""
        self._stood = arrivals(watched(self.isolated))

    def _broken_limit(self) -> str | None:
        self._looked = time.monotonic()
        processes = list(descendants(os.getpid()))
        if len(processes) > self.processes:
            return f"more than {self.processes} processes"
        if threads(processes) > MAX_THREADS:
            return f"more than {MAX_THREADS} threads"
        # where a file of /proc can be written: with CUDA, and without Landlock
        if self._rank is not None and any(rank < self._rank for rank in _ranks(processes)):
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
