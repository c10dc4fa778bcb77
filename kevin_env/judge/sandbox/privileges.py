"""What a process gives up for good: capabilities, new privileges, and room without bounds."""

import resource
import struct
from contextlib import suppress
from pathlib import Path

from kevin_env.judge.sandbox.system import LIBC, Refused, check, prctl

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
    """No core files, no better priority than given; bounded files and descriptors; first to die of
    a full machine.

    Memory and processes are watched by the keeper.
    """
    for what, most in _LIMITS:
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard // 2 if what == resource.RLIMIT_NOFILE else hard)
        resource.setrlimit(what, (most, most))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def have_descriptors() -> None:
    """Room for the descriptors of a process of ours, as far as the machine grants it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OUR_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, OUR_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def drop() -> None:
    """Gives up every capability, and the right to gain any through a setuid program.

    Raises:
        Refused: when the kernel keeps one.
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
    """Whether processes of the same user may read this one's memory and trace it. A fork inherits
    it.
    """
    prctl(_DUMPABLE, int(dumpable))
