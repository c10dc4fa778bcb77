"""Stopping, continuing and killing all that a candidate has started. Used by its keeper alone.

`isolated`: the keeper is the first process of a namespace, so that `kill(-1)` reaches everything
there and no more.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from kevin_env.judge.sandbox.system import LIBC
from kevin_env.judge.workers.usage import descendants

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
