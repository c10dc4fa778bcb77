"""How much of the sandbox this machine allows.

`python -m kevin_env.judge.sandbox.levels` prints what a candidate would get here, in one line.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kevin_env.judge.sandbox import cgroups, filesystem, seccomp, system
from kevin_env.judge.sandbox.readable import Readable, find_readable

LevelName = Literal["root", "user", "container", "landlock", "plain"]


@dataclass(frozen=True)
class Level:
    """One way of setting up a candidate.

    Attributes:
        name: Its name.
        description: For people.
        namespaces: Whether it has namespaces, and with them its own root directory.
        user: Whether they are made through a user namespace.
        processes: Whether it has a process namespace.
        landlock: Whether Landlock is applied where the kernel has it.
    """

    name: LevelName
    description: str
    namespaces: bool = True
    user: bool = False
    processes: bool = True
    landlock: bool = True


LEVELS = (
    Level("root", "namespaces made as root"),
    Level("user", "namespaces made through a user namespace", user=True),
    Level(
        "container", "namespaces but for processes, inside a container", user=True, processes=False
    ),
    Level("landlock", "no namespaces", namespaces=False, processes=False),
    Level(
        "plain", "no namespaces and no Landlock", namespaces=False, processes=False, landlock=False
    ),
)
"""From the strongest to the weakest."""


def find(readable: Readable, most: LevelName = "root") -> Level:
    """The best level, `most` or weaker, that this machine allows in full.

    Each is tried in a child process, so the caller must have one thread only.
    """
    names = [level.name for level in LEVELS]
    for level in LEVELS[names.index(most) :]:
        if not level.namespaces or _works(level, readable):
            return (
                LEVELS[-1] if level.name == "landlock" and not filesystem.landlock_abi() else level
            )
    return LEVELS[-1]


def describe(level: Level) -> str:
    """The layers in use here, in one line."""
    version = filesystem.landlock_abi() if level.landlock else 0
    parts = [level.description]
    parts += [f"Landlock {version}"] if version else []
    parts += ["system call filter"] if os.uname().machine in seccomp.NUMBERS else []
    parts.append(
        "memory counted by a control group"
        if cgroups.homes()
        else "memory watched, no control group"
    )
    return ", ".join(parts)


def _works(level: Level, readable: Readable) -> bool:
    """Whether all of it can be set up, tried in a child."""
    if level.name == "root" and os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="kevin-run-") as folder:
        return _succeeds(lambda: _try(level, readable, Path(folder)))


def _try(level: Level, readable: Readable, folder: Path) -> bool:
    system.enter_namespaces(level.user, level.processes)
    return _succeeds(
        lambda: bool(
            filesystem.change_root(readable, folder, filesystem.SCRATCH_SIZE, level.processes)
        )
    )


def _succeeds(step: Callable[[], bool]) -> bool:
    """Whether a step that changes its process is allowed; a child takes it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if step() else 1
        except OSError:  # refused
            pass
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


if __name__ == "__main__":
    print(describe(find(find_readable())))  # noqa: T201
