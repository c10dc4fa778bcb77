"""Stopping, continuing and killing all that a candidate has started. Used by its keeper alone.

`isolated`: the keeper is the first process of a namespace, so that `kill(-1)` reaches everything
there and no more.

The keeper: the first process of a candidate's namespaces, and the only one there that is ours.

It shares the candidate's namespaces so that `kill(-1)` reaches everything the submission started,
and nothing else. Where there are no namespaces it is the subreaper of the candidate, and finds the
descendants in /proc.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.sandbox.cgroups import Group
from kevin_env.judge.sandbox.filesystem import SCRATCH_SIZE
from kevin_env.judge.sandbox.system import LIBC
from kevin_env.judge.workers.usage import arrivals, descendants, more_memory_than, stored, threads

STOP_SECONDS = 5.0
STOP_PAUSE = 30e-6
LOOKS = 2
"""How often in a row everything has to be seen standing still: while a look goes from process to
process, one that has not met its signal yet may continue another that was looked at already.
"""
_TGKILL = {"x86_64": 234, "aarch64": 131}
_SPAWN = {"x86_64": (b"56", b"58", b"435"), "aarch64": (b"220", b"435")}
"""The numbers of clone, vfork and clone3."""


def signal_all(number: int, isolated: bool) -> None:
    """Sends a signal to every process in the keeper's charge."""
    if isolated:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def stop_all(isolated: bool, before_last_look: Callable[[], None] = lambda: None) -> bool:
    """Stops everything and waits until it stands still; False when it does not.

    What `before_last_look` notes of it holds from then on: whoever is continued before that look is
    seen by it.

    SIGSTOP takes effect in a whole process only when one of its threads runs and sees it. A
    submission chooses how long that takes: a thread of lowest priority may get the signal while
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
        if (
            moving is not None
        ):  # a thread needs a core to see the signal, and must not wait for this loop's time slice
            _tell_each(moving)
            time.sleep(STOP_PAUSE)
    return False


def watched(isolated: bool) -> list[int]:
    """Every process that is in the keeper's charge, but not the keeper."""
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
    # once one thread is stopped all others are about to: one inside the kernel (D) meets the signal
    # on its way out
    if states <= set("TtZX") or ("T" in states and states <= set("TtZXD")):
        return True
    return all(
        state in "ZX" or (state == "D" and _told(thread)) for thread, state in threads.items()
    )


def _tell_each(threads: dict[str, str]) -> None:
    """Sends SIGSTOP to every thread of a process by itself, if one of them spawns.

    The signal for a process wakes one thread, which stops the others when it takes it. One that
    waits for a child that stands still never does. Whoever waits inside the kernel for a disk or a
    device goes on by itself and has to be waited for: it would seem to have run while it should
    have stood still.
    """
    if any(state == "D" and _spawns(thread) for thread, state in threads.items()):
        for thread in threads:
            _, _, pid, _, number = thread.split("/")
            LIBC.syscall(_TGKILL.get(os.uname().machine, -1), int(pid), int(number), signal.SIGSTOP)


def _threads(pid: int) -> dict[str, str]:
    """The state of each thread of a process, by its place in /proc; none when it has ended."""
    try:
        return {thread.path: _state(thread.path) for thread in os.scandir(f"/proc/{pid}/task")}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def _spawns(thread: str) -> bool:
    """Whether a thread that waits inside the kernel does so until its child runs another program
    (vfork) or has ended.

    No signal ends that: it lasts for as long as the child stands still.
    """
    return _read(f"{thread}/syscall").partition(b" ")[0] in _SPAWN.get(os.uname().machine, ())


def _told(thread: str) -> bool:
    """Whether SIGSTOP waits for this very thread, so that it stops before it is back in its
    program.

    What waits for the process does not count: only the thread that was woken for it is sure to meet
    it.
    """
    # a thread's name, which it chooses, stands before and may hold anything but a newline
    waiting = _read(f"{thread}/status").partition(b"\nSigPnd:\t")[2][:16]
    return bool(int(waiting or b"0", 16) >> (signal.SIGSTOP - 1) & 1)


def _read(file: str) -> bytes:
    """What the kernel says of a thread; nothing when it has ended, or where the kernel does not
    tell.
    """
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
    """Kills until nothing is left. The end of the first process of a namespace would do it too."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        signal_all(signal.SIGKILL, isolated)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


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


class Watch:
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
