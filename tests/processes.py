"""Looking at processes through /proc."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process that can be told from a later one with the same number."""

    pid: int
    started: int


def descendants(pid: int) -> set[Process]:
    """Every process below `pid`; kept children of processes that are gone are below whoever adopted
    them.
    """
    parents: dict[int, list[Process]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(Process(int(entry.name), int(fields[19])))
    found: set[Process] = set()
    waiting = [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found |= set(children)
        waiting += [child.pid for child in children]
    return found


def named(processes: set[Process], text: str) -> list[int]:
    """Those whose name or command line holds `text`."""
    found = []
    for process in processes:
        try:
            place = Path(f"/proc/{process.pid}")
            words = (place / "comm").read_text() + (place / "cmdline").read_text()
        except OSError:
            continue
        found += [process.pid] if text in words else []
    return found


def wait_for(text: str, seconds: float = 120, below: int | None = None) -> int:
    """A process below this one or `below`, whose name or command line holds `text`, as soon as
    there is one.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = named(descendants(below or os.getpid()), text)
        if found:
            return found[0]
        time.sleep(0.02)
    raise TimeoutError(f"no process {text!r}")


def outlived(processes: set[Process], seconds: float = 20) -> set[Process]:
    """Those that are still there after `seconds`, or none as soon as all are gone (dead but not
    reaped is gone).
    """
    deadline = time.monotonic() + seconds
    while (
        left := {process for process in processes if _alive(process)}
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def zombies() -> list[int]:
    """Children of this process that have ended and were not waited for."""
    return [
        each.pid
        for each in descendants(os.getpid())
        if _fields(each)[:2] == ["Z", str(os.getpid())]
    ]


def _fields(process: Process) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _alive(process: Process) -> bool:
    fields = _fields(process)
    return bool(fields) and int(fields[19]) == process.started and fields[0] != "Z"
