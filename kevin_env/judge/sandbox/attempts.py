"""What a candidate is kept from, by trying it.

A new candidate attacks its own sandbox before a submission is there: what a report calls enforced
was seen to fail. `Canary` is what the judge puts up to be reached; everything else here runs in a
candidate, which is still trusted then.
"""

import ctypes
import itertools
import os
import resource
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from kevin_env.judge.sandbox.readable import Readable, user_folders
from kevin_env.judge.sandbox.system import LIBC, check

Protection = Literal["network", "filesystem", "limits", "processes"]
PROTECTIONS: tuple[Protection, ...] = ("network", "filesystem", "limits", "processes")
Excess = Literal["processes", "memory"]
"""What a candidate may use too much of, to be killed."""

USER_FILES = 4
"""How many files of each folder of the user are tried."""
EXCESS_SECONDS = 10.0
_OF_THE_SYSTEM = ("/etc/shadow", "/etc/hostname", "/proc/cmdline")
_SHELL = "exec 3<&0; i=0; while [ $i -lt $1 ]; do { read line <&3; } & i=$((i+1)); done; wait"
"""Starts processes that wait for a line; a shell's are small."""


class Canary:
    """A file and sockets that candidates try to reach.

    Args:
        folder: An empty folder that no candidate may read.
        readable: What they may read.

    Attributes:
        targets: What they are to try, as JSON.
    """

    def __init__(self, folder: Path, readable: Readable) -> None:
        file, path, abstract = folder / "canary", folder / "socket", f"kevin-{secrets.token_hex(8)}"
        file.write_text("no candidate reads this")
        self._sockets = list[socket.socket]()
        for name in (str(path), f"\0{abstract}"):
            self._sockets.append(socket.socket(socket.AF_UNIX))
            with suppress(OSError):  # a path in a deep TMPDIR may be too long for a socket
                self._sockets[-1].bind(name)
                self._sockets[-1].listen()
        port = 0
        with suppress(OSError):  # a judge without a network; opening a socket is tried still
            self._sockets.append(socket.create_server(("127.0.0.1", 0)))
            port = self._sockets[-1].getsockname()[1]
        self.targets: dict[str, Any] = {
            "file": str(file), "socket": str(path), "abstract": abstract, "port": port,
            "files": [str(each) for each in _files_of_the_user(readable)],
        }  # fmt: skip

    def close(self) -> None:
        """Closes the sockets; the folder is the caller's."""
        for each in self._sockets:
            each.close()


def withstood(targets: dict[str, Any], server: int, everything: bool) -> list[Protection]:
    """The protections against which no attempt of this process succeeded.

    Args:
        targets: Those of a `Canary`.
        server: The fork server: a process of the same user outside the sandbox.
        everything: Whether to try all; otherwise what takes less than a millisecond.
    """
    tried = [*_attempts(targets, server), *(_more_attempts(targets, server) if everything else ())]
    broken = {protection for protection, attempt in tried if _succeeds(attempt)}
    return [each for each in PROTECTIONS if each not in broken]


def exceed(what: Excess, limit: int) -> None:
    """Uses more processes or memory than `limit`, and waits to be killed for it."""
    reader, _ = os.pipe()
    if what == "processes":
        subprocess.Popen(["/bin/sh", "-c", _SHELL, "sh", str(2 * limit)], stdin=reader)
    used = b"\1" * (2 * limit if what == "memory" else 0)
    time.sleep(EXCESS_SECONDS)
    del used
    os._exit(0)


Attempt = tuple[Protection, Callable[[], object]]


def _attempts(targets: dict[str, Any], server: int) -> Iterator[Attempt]:
    yield "filesystem", lambda: _read(targets["file"])
    yield "filesystem", lambda: _connect(socket.AF_UNIX, targets["socket"])
    yield "network", lambda: _connect(socket.AF_UNIX, f"\0{targets['abstract']}")
    yield "network", lambda: _connect(socket.AF_INET, ("127.0.0.1", targets["port"]))
    yield "limits", _raise_a_limit
    yield "processes", lambda: os.kill(server, 0)


def _more_attempts(targets: dict[str, Any], server: int) -> Iterator[Attempt]:
    for path in targets["files"]:
        yield "filesystem", lambda path=path: _read(path)
    yield "filesystem", lambda: Path(targets["file"]).with_name("written").touch()
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_VSOCK):
        yield "network", lambda family=family: socket.socket(family, socket.SOCK_DGRAM)
    yield "processes", lambda: _read(f"/proc/{server}/environ")
    yield "processes", lambda: _read_memory_of(server)
    yield "processes", lambda: os.setpriority(os.PRIO_PROCESS, server, _priority(server))


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _read(path: str) -> None:
    """Opens a file and reads a byte."""
    with Path(path).open("rb", buffering=0) as file:
        file.read(1)


def _connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.settimeout(1.0)
        tried.connect(address)


def _raise_a_limit() -> None:
    """Raises OSError where the limit of descriptors cannot be raised."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most + 1))
    except ValueError as error:  # Python's error for EPERM
        raise OSError(str(error)) from error


def _read_memory_of(process: int) -> None:
    """Reads eight bytes of an address that processes forked from one another share."""
    buffer = ctypes.create_string_buffer(8)
    address = ctypes.cast(LIBC.getpid, ctypes.c_void_p)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(address.value, 8)
    check("process_vm_readv", LIBC.process_vm_readv(process, local, 1, remote, 1, 0))


def _priority(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


def _files_of_the_user(readable: Readable) -> Iterator[Path]:
    """Files that this process can read and a candidate must not."""
    open_to_it = [place.resolve() for place in readable.places]
    for folder in dict.fromkeys(user_folders()):
        closed = (
            each
            for each in _readable_files(folder)
            if not any(each.resolve().is_relative_to(place) for place in open_to_it)
        )
        yield from itertools.islice(closed, USER_FILES)
    yield from (path for path in map(Path, _OF_THE_SYSTEM) if os.access(path, os.R_OK))


def _readable_files(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        for each in sorted(folder.iterdir()):
            if each.is_file() and os.access(each, os.R_OK):
                yield each
