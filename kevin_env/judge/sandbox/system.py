"""Namespaces, capabilities and limits of the calling process, and the system calls for them.

Python has no functions for these system calls.
"""

import ctypes
import fcntl
import os
import re
import resource
import socket
import struct
from contextlib import suppress
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
    """Returns the result of a system call.

    Raises:
        Refused: if it is an error.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise Refused(code, f"{step}: {os.strerror(code)}")
    return result


def prctl(what: int, *arguments: int) -> None:
    """One `prctl` call.

    Raises:
        Refused: if it is refused.
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
    """Makes a mount and everything below it read-only in this mount namespace.

    Raises:
        Refused: if it is refused.
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
    """Makes the mount `new` the root of this mount namespace; the old one becomes unreachable.

    Raises:
        Refused: if it is refused.
    """
    os.chdir(new)
    check("pivot_root", LIBC.syscall(_PIVOT_ROOT.get(os.uname().machine, -1), b".", b"."))
    check("umount2", LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")


def _mounts_below(target: str) -> list[tuple[str, int]]:
    """Each mount at or below `target`, with those of its flags that a remount must repeat."""
    names = {
        "nodev": MS_NODEV,
        "noexec": MS_NOEXEC,
        "noatime": 1024,
        "nodiratime": 2048,
        "relatime": 1 << 21,
    }
    mounts: list[tuple[str, int]] = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = os.fsdecode(line).split()
        place = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if place == target or place.startswith(f"{target.rstrip('/')}/"):
            mounts.append((place, sum(names.get(name, 0) for name in fields[5].split(","))))
    return mounts


_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
NEW = 0x7E020080
"""All flags of clone(2) that make namespaces, with control groups (0x2000000) and time (0x80)."""


def enter_namespaces(user: bool, processes: bool, network: bool = True) -> None:
    """Moves the caller into new namespaces; for processes, only its future children.

    Args:
        user: Whether to use a user namespace, which needs no privilege.
        processes: Whether to add a process namespace; the caller then mounts a /proc for it.
        network: Whether to add a network namespace; without one, it keeps the machine's network.

    Raises:
        Refused: if the kernel does not allow it; then nothing has changed.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = (
        _NEWNS
        | (_NEWNET if network else 0)
        | _NEWIPC
        | _NEWUTS
        | (_NEWUSER if user else 0)
        | (_NEWPID if processes else 0)
    )
    check("unshare", LIBC.unshare(flags))
    if (
        user
    ):  # the same number inside, so that files keep their owner and the GPU's driver knows the user
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def raise_loopback() -> None:
    """Brings up the loopback interface of the caller's network namespace.

    Its processes can then reach each other, and nothing else. NVIDIA's tools talk to the profiled
    program over TCP.

    Raises:
        OSError: if the kernel does not allow it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


_DUMPABLE, _CAPBSET_DROP, _CHILD_SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT, _CAP_AMBIENT_CLEAR = (
    4,
    24,
    36,
    38,
    47,
    4,
)
_CAPABILITY_VERSION = 0x20080522
LARGEST_FILE = 4 << 30
DESCRIPTORS, OUR_DESCRIPTORS = 4096, 1 << 16
"""What a candidate may have, or half of what the machine grants, and a process of the judge's.
Those that lie unread in sockets count for all processes of a user, each against its own limit: ours
has to be above that of a candidate.
"""
_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, LARGEST_FILE),
    (resource.RLIMIT_NOFILE, DESCRIPTORS),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_NICE, 0),
    (resource.RLIMIT_RTPRIO, 0),
    (
        resource.RLIMIT_SIGPENDING,
        256,
    ),  # counts the kernel's timers, which end also while their process stands still
)


def limit_resources() -> None:
    """Limits files and descriptors; no core files and no better priority; first to be OOM-killed.

    Memory and processes are watched by the supervisor.
    """
    for what, most in _LIMITS:
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard // 2 if what == resource.RLIMIT_NOFILE else hard)
        resource.setrlimit(what, (most, most))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def oom_rank(pid: int) -> int | None:
    """How early the kernel would kill a process for lack of memory; None if that is unknown."""
    try:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    except (OSError, ValueError):
        return None


def have_descriptors() -> None:
    """Raises the descriptor limit of a judge's process as far as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OUR_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, OUR_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def drop_privileges() -> None:
    """Gives up all capabilities, and the right to gain any through a setuid program.

    Raises:
        Refused: if the kernel keeps one.
    """
    prctl(_NO_NEW_PRIVS, 1)
    with suppress(Refused):  # the first number beyond the last capability
        for capability in range(64):
            prctl(_CAPBSET_DROP, capability)
    with suppress(Refused):  # kernels before 4.3
        prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR)
    check("capset", LIBC.capset(struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)))


def become_subreaper() -> None:
    """Makes orphaned descendants children of the caller, so that none is lost."""
    prctl(_CHILD_SUBREAPER, 1)


def set_dumpable(dumpable: bool) -> None:
    """Whether processes of the same user may read or trace this one. Inherited by forks."""
    prctl(_DUMPABLE, int(dumpable))
