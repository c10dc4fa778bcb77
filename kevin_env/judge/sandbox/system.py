"""The system calls that Python has no function for."""

import ctypes
import os
import re
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE, MNT_DETACH = 1 << 14, 1 << 18, 2
LIBC = ctypes.CDLL(None, use_errno=True)
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000


class Refused(OSError):
    """The kernel refused a step."""


def check(step: str, result: int) -> int:
    """The result of a system call.

    Raises:
        Refused: when it is an error.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise Refused(code, f"{step}: {os.strerror(code)}")
    return result


def prctl(what: int, *arguments: int) -> None:
    """One `prctl`.

    Raises:
        Refused: when it is refused.
    """
    check("prctl", LIBC.prctl(what, *map(ctypes.c_ulong, (*arguments, 0, 0, 0, 0)[:4])))


def mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    """Mounts.

    Raises:
        Refused: when it is refused.
    """
    encoded = [None if part is None else part.encode() for part in (source, target, kind, data)]
    check(
        f"mount {target}",
        LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]),
    )


def make_read_only(target: str) -> None:
    """Makes a mount and all below it read-only, for this mount namespace.

    Raises:
        Refused: when it is refused.
    """
    wanted = (ctypes.c_uint64 * 4)(
        MS_RDONLY | MS_NOSUID, 0, 0, 0
    )  # the attributes to set have the same numbers
    if LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, wanted, 32) == 0:
        return
    for place, flags in _mounts_below(
        target
    ):  # before Linux 5.12: one by one, with the flags that each has
        mount(None, place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | flags)


def pivot_root(new: str) -> None:
    """Makes `new`, a mount, the root of this mount namespace; what was there before can no longer
    be reached.

    Raises:
        Refused: when it is refused.
    """
    os.chdir(new)
    check("pivot_root", LIBC.syscall(_PIVOT_ROOT.get(os.uname().machine, -1), b".", b"."))
    check("umount2", LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")


def _mounts_below(target: str) -> list[tuple[str, int]]:
    """Each mount at or below `target` with those of its flags that a remount must repeat."""
    names = {
        "nodev": MS_NODEV,
        "noexec": MS_NOEXEC,
        "noatime": 1024,
        "nodiratime": 2048,
        "relatime": 1 << 21,
    }
    found: list[tuple[str, int]] = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = os.fsdecode(line).split()
        place = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if place == target or place.startswith(f"{target.rstrip('/')}/"):
            found.append((place, sum(names.get(name, 0) for name in fields[5].split(","))))
    return found
