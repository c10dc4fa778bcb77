"""Stopping, continuing and killing all that a candidate has started. Used by its keeper alone.

`isolated`: the keeper is the first process of a namespace, so that `kill(-1)` reaches everything there and no more.
"""

import contextlib
import os
import signal
import time

from kevin_env.judge.usage import descendants

STOP_SECONDS = 5.0
STOP_PAUSE = 30e-6
LOOKS = 2
"""How often in a row everything has to be seen standing still: while a look goes from process to process, one that has
not met its signal yet may continue another that was looked at already."""


def signal_all(number: int, isolated: bool) -> None:
    """Sends a signal to every process in the keeper's charge."""
    if isolated:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def stop_all(isolated: bool) -> bool:
    """Stops everything and waits until it stands still; False when it does not.

    SIGSTOP takes effect in a whole process only when one of its threads runs and sees it. A submission chooses how
    long that takes: a thread of lowest priority may get the signal while others keep the cores busy.
    """
    deadline, looks = time.monotonic() + STOP_SECONDS, 0
    while time.monotonic() < deadline:
        signal_all(signal.SIGSTOP, isolated)
        looks = looks + 1 if all(map(_stopped, watched(isolated))) else 0
        if looks == LOOKS:
            return True
        if not looks:  # a thread needs a core to see the signal, and must not wait for this loop's time slice
            time.sleep(STOP_PAUSE)
    return False


def watched(isolated: bool) -> list[int]:
    """Every process that is in the keeper's charge, but not the keeper."""
    if not isolated:
        return list(descendants(os.getpid()))
    return [int(place.name) for place in os.scandir("/proc") if place.name.isdigit() and place.name != "1"]


def _stopped(pid: int) -> bool:
    """Whether no thread of a process runs, nor can before it is continued."""
    try:
        states = {_state(thread.path) for thread in os.scandir(f"/proc/{pid}/task")}
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return True
    # once one thread is stopped all others are about to: one inside the kernel (D) meets the signal on its way out
    return states <= set("TtZX") or ("T" in states and states <= set("TtZXD"))


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
