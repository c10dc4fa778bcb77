"""Landlock: which files may be opened and how, whether or not there are namespaces."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from kevin_env.judge.sandbox.places import devices, readable
from kevin_env.judge.sandbox.system import LIBC, Refused, check, prctl

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_BY_ABI = {
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
    5: (1 << 16) - 1,
}
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_ALL_TCP, _ABSTRACT_SOCKETS, _SIGNALS = 3, 1, 2
_ABI_TCP, _ABI_SCOPES = 4, 6
_NO_NEW_PRIVS = 38


def abi() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    return max(0, LIBC.syscall(_CREATE, None, 0, 1))


def scopes_signals() -> bool:
    """Whether a restricted process can signal only processes that are restricted with it."""
    return abi() >= _ABI_SCOPES


def restrict(scratch: Iterable[Path], tcp: bool = False, children: bool = False) -> None:
    """Reads and runs the system and this Python, writes the scratch folders and devices; no TCP, no
    foreign signals.

    Args:
        scratch: What may be written.
        tcp: Whether TCP is allowed after all, for a network of its own.
        children: Whether processes that it starts may use CUDA, too; only where /proc is its own.

    Raises:
        Refused: when the kernel has no Landlock.
    """
    version = abi()
    if not version:
        raise Refused("this kernel has no Landlock")
    handled = _RIGHTS_BY_ABI[min(version, 5)]
    attributes = [handled, 0 if tcp else _ALL_TCP, _ABSTRACT_SOCKETS | _SIGNALS]
    known = attributes[: 1 + (version >= _ABI_TCP) + (version >= _ABI_SCOPES)]
    packed = struct.pack(f"{len(known)}Q", *known)
    ruleset = check("landlock_create_ruleset", LIBC.syscall(_CREATE, packed, len(packed), 0))
    _allow_all(ruleset, handled, scratch, Path("/proc" if children else "/proc/self"))
    prctl(_NO_NEW_PRIVS, 1)
    check("landlock_restrict_self", LIBC.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _allow_all(ruleset: int, handled: int, scratch: Iterable[Path], processes: Path) -> None:
    for place in readable():
        _allow(ruleset, place, (_EXECUTE | _READ_FILE | _READ_DIR) & handled)
    for place in scratch:
        _allow(ruleset, place, handled)
    _allow(ruleset, Path("/dev"), _READ_DIR)
    for place in devices():
        _allow(ruleset, place, (_READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV) & handled)
    # uid 0 may write to /proc/sys without any capability, so only to what is its own. CUDA opens
    # /proc/self/task/*/comm for writing, with O_TRUNC; without that cuInit fails with error 304. A
    # child's /proc/self is another one
    _allow(ruleset, Path("/proc"), (_READ_FILE | _READ_DIR) & handled)
    _allow(ruleset, processes, (_READ_FILE | _WRITE_FILE | _READ_DIR | _TRUNCATE) & handled)


def _allow(ruleset: int, place: Path, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if place.is_dir() else _FILE_RIGHTS
        check(
            "landlock_add_rule", LIBC.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, fd), 0)
        )
    finally:
        os.close(fd)
