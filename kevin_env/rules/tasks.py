"""Calls that a submission hands to threads, pools and executors of Python's library: what is called, with what."""

from dataclasses import dataclass
from typing import Literal

from kevin_env.rules import library
from kevin_env.rules.atoms import UNKNOWN, Arguments, Thread, Value, opened
from kevin_env.rules.values import spread


@dataclass(frozen=True)
class Task:
    """A call that is made for the submission."""

    callee: Value
    arguments: Arguments
    gives: Literal["result", "results", "future"]


def is_thread(path: str) -> bool:
    """Whether the imported class is one of threads or processes."""
    root, _, last = path.partition(".")
    return root in ("threading", "multiprocessing") and last.rsplit(".", 1)[-1] in library.THREADS


def thread(path: str, arguments: Arguments) -> Thread | None:
    """The thread that the class makes; None when it is given nothing to call."""
    timer = path.endswith(".Timer")
    callee = arguments.get(1, "function" if timer else "target")
    first = 2 if timer else 3
    given, named = arguments.get(first, "args"), arguments.get(first + 1, "kwargs")
    return None if callee is None else Thread(callee, spread(given or UNKNOWN, named or UNKNOWN))


def executed(path: str, arguments: Arguments) -> Task | None:
    """The call that an executor or a pool makes when it is called so; None when it makes none."""
    root, _, last = path.rpartition(".")
    if root.split(".")[0] not in library.EXECUTORS:
        return None
    callee, given = arguments.get(0, "func") or UNKNOWN, arguments.positional[1:]
    one = arguments.get(1, "iterable" if last == "starmap" else "args") or UNKNOWN
    match last:
        case "submit" | "to_thread" | "add_done_callback":
            return Task(callee, Arguments(given, arguments.keywords, arguments.rest), "future")
        case "map" | "imap" | "imap_unordered":
            return Task(callee, Arguments(tuple(map(opened, given)), rest=opened(arguments.rest)), "results")
        case "starmap":
            return Task(callee, spread(opened(one)), "results")
        case "apply" | "apply_async" | "start_new_thread":
            named = arguments.get(2, "kwds") or UNKNOWN
            return Task(callee, spread(one, named), "result" if last == "apply" else "future")
        case _:
            return None
