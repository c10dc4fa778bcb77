"""The keeper: the first process of a candidate's namespaces, and the only one there that is ours.

It shares the candidate's namespaces so that `kill(-1)` reaches everything the submission started, and nothing else.
Where there are no namespaces it is the subreaper of the candidate, and finds the descendants in /proc.
"""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge import sandbox

WATCH_SECONDS = 0.25
STOP_SECONDS = 5.0
STOP_PAUSE = 30e-6
MAX_PROCESSES = 512
MAX_MEASURED = 64
"""Of more processes than this no exact share of their memory is found: that takes milliseconds for each."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def keep(
    order: dict[str, Any], report: dict[str, str], scratch: tuple[Path, ...], channel: int, lifeline: int, log: int
) -> None:
    """Forks the candidate and watches over it until it or the judge is gone. Does not return."""
    isolated = report["processes"] == "enforced" and os.getpid() == 1  # else signals would reach the whole machine
    sandbox.set_dumpable(False)
    sandbox.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(lifeline)
        os.close(reader)
        _become_candidate(order, report, scratch, channel, log, writer)
    os.close(channel)
    os.close(log)
    os.close(writer)
    judge = Channel(socket.socket(fileno=lifeline))
    with os.fdopen(reader) as pipe:
        told = pipe.read().split()  # which protections hold; written before anything of the submission is there
    judge.send({"sandbox": {**report, **dict.fromkeys(told, "enforced")}})
    try:
        _watch(judge, pid, order["memory"], scratch if isolated else (), isolated)
    finally:
        _kill_all(isolated)
        os._exit(0)


def _become_candidate(
    order: dict[str, Any], report: dict[str, str], scratch: tuple[Path, ...], channel: int, log: int, writer: int
) -> None:
    """In the candidate, before anything of the submission: closes the sandbox, then serves. Does not return."""
    try:
        sandbox.set_dumpable(True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(log)
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        _close_sandbox(scratch, writer)
        os.close(writer)
        from kevin_env.candidate.runtime import Runtime

        Runtime(Channel(socket.socket(fileno=channel), spin=order["spin"], takes_fds=True)).serve()
    finally:
        os._exit(0)


def _close_sandbox(scratch: tuple[Path, ...], writer: int) -> None:
    sandbox.limit_resources()
    os.write(writer, b"limits ")
    with contextlib.suppress(sandbox.Refused):
        sandbox.restrict_files(scratch)
        sandbox.drop_privileges()
        os.write(writer, b"filesystem ")


def _watch(judge: Channel, pid: int, memory: int, scratch: tuple[Path, ...], isolated: bool) -> None:
    """Until the candidate ends or the judge hangs up; tells the judge of the end."""
    ended = os.pidfd_open(pid)
    looked = time.monotonic()
    while True:
        readable, _, _ = select.select([judge.sock, ended], [], [], WATCH_SECONDS)
        if ended in readable:
            _, status = os.waitpid(pid, 0)
            judge.send({"ended": os.waitstatus_to_exitcode(status)})
            return
        if judge.sock in readable:
            try:
                order = judge.receive()
            except (Closed, WireError):
                return
            if not order["freeze"]:
                _signal_all(signal.SIGCONT, isolated)
            elif not _stop_all(isolated):
                judge.send({"limit": "a process that does not stop"})
                return
            judge.send({"done": True})
            if not order["freeze"] or time.monotonic() < looked + WATCH_SECONDS:
                continue  # a window may be open; between two of them is the time to look
        if (broken := _broken_limit(memory, scratch)) is not None:
            judge.send({"limit": broken})
            return
        looked = time.monotonic()


def _broken_limit(memory: int, scratch: tuple[Path, ...]) -> str | None:
    processes = list(_descendants())
    if len(processes) > MAX_PROCESSES:
        return f"more than {MAX_PROCESSES} processes"
    allowed = memory - sum(map(_stored, scratch))
    measure = _proportional if len(processes) <= MAX_MEASURED else _resident
    if sum(map(_resident, processes)) > allowed and sum(map(measure, processes)) > allowed:
        return f"more than {memory >> 20} MiB of memory"
    return None


def _descendants() -> Iterator[int]:
    """Every process below the keeper."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(after_name[1]), []).append(int(entry.name))
    todo = [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        yield from children
        todo += children


def _resident(pid: int) -> int:
    """Resident bytes that are no file's and no memfd's. What a fork shares with its parent counts twice."""
    try:
        _, resident, shared, *_ = (Path("/proc") / str(pid) / "statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * PAGE


def _proportional(pid: int) -> int:
    """As `_resident`, each page divided by the number of processes that share it."""
    with contextlib.suppress(OSError):
        for line in (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) << 10
    return _resident(pid)


def _stored(place: Path) -> int:
    """Bytes in a file system that is held in memory."""
    with contextlib.suppress(OSError):
        found = os.statvfs(place)
        return (found.f_blocks - found.f_bfree) * found.f_frsize
    return 0


def _signal_all(number: int, isolated: bool) -> None:
    if isolated:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    for pid in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _stop_all(isolated: bool) -> bool:
    """Stops everything and waits until it stands still; False when it does not.

    SIGSTOP takes effect in a whole process only when one of its threads runs and sees it. A submission chooses how
    long that takes: a thread of lowest priority may get the signal while others keep the cores busy.
    """
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        _signal_all(signal.SIGSTOP, isolated)
        if all(map(_stopped, _others() if isolated else _descendants())):
            return True
        time.sleep(STOP_PAUSE)  # a thread needs a core to see the signal, and must not wait for this loop's time slice
    return False


def _others() -> list[int]:
    """Every process of the keeper's namespace but itself."""
    return [int(place.name) for place in os.scandir("/proc") if place.name.isdigit() and place.name != "1"]


def _stopped(pid: int) -> bool:
    """Whether no thread of a process runs, nor can before it is continued."""
    try:
        states = {_state(thread.path) for thread in os.scandir(f"/proc/{pid}/task")}
    except OSError:  # it has ended
        return True
    # once one thread is stopped all others are about to: one inside the kernel (D) meets the signal on its way out
    return states <= set("TtZX") or ("T" in states and states <= set("TtZXD"))


def _state(thread: str) -> str:
    try:
        stat = os.open(f"{thread}/stat", os.O_RDONLY)
    except OSError:  # it has ended
        return "X"
    try:
        return os.read(stat, 512).rpartition(b")")[2][1:2].decode()
    except ProcessLookupError:
        return "X"
    finally:
        os.close(stat)


def _kill_all(isolated: bool) -> None:
    """Kills until nothing is left. The end of the first process of a namespace would do it too."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        _signal_all(signal.SIGKILL, isolated)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return
