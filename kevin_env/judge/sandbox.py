"""What a candidate process may do, applied by itself between the fork and the first line of the submission.

Namespaces give it its own processes, network, mounts and shared memory; Landlock lets it read the system and the
Python installation and write its own folder only; capabilities and new privileges are gone. Each step that this
machine refuses is reported as missing, never skipped in silence. The steps are direct system calls because a warmed
interpreter cannot be handed through a program such as bwrap that ends in exec (docs/decisions.md has the figures).
"""

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 24, 36, 38, 47
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

SYSTEM_PLACES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/sys"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/nvidia"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/os-release"),
)
DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia*", "dxg")
"""What may be opened under /dev. Disks, above all, may not: uid 0 needs no capability to write to one."""
SCRATCH_SIZE = "8g"
PROTECTIONS = ("network", "filesystem", "limits", "processes")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(OSError):
    """The kernel refused a step."""


def enter_namespaces() -> None:
    """Moves the caller (and, for processes, its future children) into namespaces of its own.

    Raises:
        Refused: when the kernel allows none of it; nothing has changed then.
    """
    flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    if os.geteuid() == 0:
        _check("unshare", _LIBC.unshare(flags))
        return
    uid, gid = os.geteuid(), os.getegid()
    _check("unshare", _LIBC.unshare(flags | CLONE_NEWUSER))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def mount_private(folder: Path) -> tuple[Path, ...]:
    """In fresh namespaces: a /proc that shows only them, and empty memory-backed scratch folders.

    Args:
        folder: The candidate's own folder; it is empty afterwards.

    Returns:
        The scratch folders that are now private: `folder` and, where the Python installation does not lie under it,
        the whole of /tmp.

    Raises:
        Refused: when a mount fails.
    """
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    tmp = Path("/tmp")
    own_tmp = tmp.is_dir() and not any(place.is_relative_to(tmp) for place in _readable())
    scratch = [place for place in (Path("/dev/shm"), *([tmp] if own_tmp else [])) if place.is_dir()]
    for place in scratch:
        _mount("tmpfs", str(place), "tmpfs", MS_NOSUID | MS_NODEV, f"size={SCRATCH_SIZE},mode=1777")
    if not folder.is_dir():
        folder.mkdir(parents=True)
    else:
        _mount("tmpfs", str(folder), "tmpfs", MS_NOSUID | MS_NODEV, f"size={SCRATCH_SIZE},mode=0700")
    return (folder, *scratch)


def limit_resources() -> None:
    """No core files; bounded files and descriptors. Memory and processes are watched by the keeper."""
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_NOFILE, 4096)):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def restrict_files(scratch: Iterable[Path]) -> None:
    """Landlock: reads and runs the system and this Python, writes the scratch folders and devices only.

    Raises:
        Refused: when the kernel has no Landlock.
    """
    abi = _LIBC.syscall(LANDLOCK_CREATE, None, 0, 1)
    _check("landlock", abi)
    handled = _RIGHTS_BY_ABI[min(abi, 5)]
    ruleset = _LIBC.syscall(LANDLOCK_CREATE, struct.pack("Q", handled), 8, 0)
    _check("landlock_create_ruleset", ruleset)
    read = EXECUTE | READ_FILE | READ_DIR
    for place in _readable():
        _allow(ruleset, place, read & handled)
    for place in scratch:
        _allow(ruleset, place, handled)
    _allow(ruleset, Path("/dev"), READ_DIR)
    for place in (found for name in DEVICES for found in Path("/dev").glob(name)):
        _allow(ruleset, place, (READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV) & handled)
    # uid 0 may write to /proc/sys without any capability, so only to what is its own. CUDA opens /proc/self/task/*/comm
    # for writing, with O_TRUNC; without that cuInit fails with error 304
    _allow(ruleset, Path("/proc"), (READ_FILE | READ_DIR) & handled)
    _allow(ruleset, Path("/proc/self"), (READ_FILE | WRITE_FILE | READ_DIR | TRUNCATE) & handled)
    _check("prctl", _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check("landlock_restrict_self", _LIBC.syscall(LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)


def drop_privileges() -> None:
    """Gives up every capability, for good, and the right to gain any through a setuid program.

    Raises:
        Refused: when the kernel keeps one.
    """
    _check("prctl", _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        if _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    with suppress(Refused):  # kernels before 4.3
        _check("prctl", _LIBC.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0))
    header = struct.pack("Ii", 0x20080522, 0)
    _check("capset", _LIBC.capset(header, b"\0" * 24))


def become_subreaper() -> None:
    """Makes orphaned descendants children of the caller, so that none is lost."""
    _check("prctl", _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def set_dumpable(dumpable: bool) -> None:
    """Whether processes of the same user may read this one's memory and trace it. A fork inherits it."""
    _check("prctl", _LIBC.prctl(PR_SET_DUMPABLE, int(dumpable), 0, 0, 0))


def _readable() -> list[Path]:
    """The system, this Python, CUDA. Of a source checkout of ours only the candidate's own package."""
    places = {Path(p) for p in (*SYSTEM_PLACES, sys.prefix, sys.base_prefix, sys.exec_prefix)}
    for entry in (Path(p) for p in sys.path if p and Path(p).is_absolute()):
        own = entry / "kevin_env" / "candidate"
        places.add(own if own.is_dir() and entry.name not in ("site-packages", "dist-packages") else entry)
    places |= {Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)}
    places |= {Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p}
    return [place for place in places if place.exists()]


def _allow(ruleset: int, place: Path, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if place.is_dir() else _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, fd)
        _check("landlock_add_rule", _LIBC.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0))
    finally:
        os.close(fd)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if part is None else part.encode() for part in (source, target, kind, data)]
    _check(f"mount {target}", _LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]))


def _check(step: str, result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise Refused(code, f"{step}: {os.strerror(code)}")
