"""Namespaces: processes, network, mounts, shared memory and host name of the candidate's own."""

import fcntl
import os
import socket
import struct
from pathlib import Path

from kevin_env.judge.sandbox.system import LIBC, check

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
"""Every flag of clone(2) that makes a namespace: those above, control groups (0x2000000) and time
(0x80).
"""


def enter(user: bool, processes: bool) -> None:
    """Moves the caller (and, for processes, its future children) into namespaces of its own.

    Args:
        user: Through a user namespace, which needs no privilege.
        processes: Whether with a process namespace; the caller then mounts a /proc for it.

    Raises:
        Refused: when the kernel allows it not; nothing has changed then.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = (
        _NEWNS
        | _NEWNET
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
    """Brings up the loopback interface of the caller's network namespace: processes in it can speak
    to each other.

    Nothing else can be reached through it. NVIDIA's tools speak to the program that they look into
    over TCP.

    Raises:
        OSError: when the kernel allows it not.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
