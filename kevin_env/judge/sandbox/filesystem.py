"""Which files a candidate sees, and which of those it may open.

With namespaces it gets its own root directory: read-only binds of what it may see, and one file
system in memory to write to. What is not bound has no path, so neither files nor Unix sockets of
the machine can be named. Landlock restricts how files may be opened, with or without namespaces.
"""

import functools
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kevin_env.judge.sandbox.system import (
    LIBC,
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    Refused,
    check,
    make_read_only,
    mount,
    pivot_root,
    prctl,
)  # fmt: skip

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/sys"),
    *(
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/alternatives",
        "/etc/nvidia",
    ),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/os-release"),
)
DEVICES = ("null", "full", "random", "urandom", "nvidia*", "dxg")
"""What may be opened under /dev.

Disks may not: uid 0 needs no capability to write to one. Nor /dev/zero, whose shared mappings are
memory that no limit counts.
"""

SCRATCH = (Path("/dev/shm"), Path("/tmp"))
"""World-writable on any machine; a candidate gets its own. PYTHONPATH may include all of /tmp."""


@functools.cache
def readable() -> tuple[Path, ...]:
    """The system, this Python and CUDA. Of a source checkout, only what a candidate imports."""
    places = {Path(p) for p in (*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix)}
    for entry in (Path(p) for p in sys.path if p and Path(p).is_absolute()):
        own = {entry / "kevin_env" / name for name in ("candidate", "extension")}
        checkout = entry.name not in ("site-packages", "dist-packages") and all(
            place.is_dir() for place in own
        )
        places |= own if checkout else {entry}
    places |= {
        Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)
    }
    places |= {Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p}
    return tuple(sorted(place for place in places if place.exists()))


@functools.cache
def shown() -> tuple[tuple[Path, Path | None], ...]:
    """What has to be bound for all of `readable` to exist, under its names and link targets.

    Each place with its target if it is a link. Places inside another one are left out.
    """
    targets: dict[Path, Path | None] = {}
    for place in sorted({*readable(), *(place.resolve() for place in readable())}):
        covered = any(parent in targets and targets[parent] is None for parent in place.parents)
        if not covered and not any(scratch.is_relative_to(place) for scratch in SCRATCH):
            targets[place] = place.readlink() if place.is_symlink() else None
    return tuple(targets.items())


def devices() -> Iterator[Path]:
    """The devices of `DEVICES` that exist."""
    return (path for name in DEVICES for path in Path("/dev").glob(name))


SCRATCH_SIZE = 8 << 30
INODES = 1 << 20
_SUPERVISOR = "1"


def change_root(folder: Path, size: int, fresh_proc: bool) -> tuple[Path, ...]:
    """In fresh namespaces: replaces the root directory.

    Args:
        folder: The candidate's empty folder; it has the same name afterwards.
        size: Bytes of memory that it may use. Writing fails at twice that.
        fresh_proc: Whether the process namespace is new, too, and needs a /proc.

    Returns:
        The writable places, all of one file system.

    Raises:
        Refused: if the machine does not allow it.
    """
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", str(folder), "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=0755")
    _add_scratch(folder, min(2 * size, SCRATCH_SIZE))
    for place, link in shown():
        _show(folder, place, link)
    _add_devices(folder)
    _add_proc(folder, fresh_proc)
    mount(None, str(folder), None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    pivot_root(str(folder))
    return (folder, *SCRATCH)


def _add_scratch(root: Path, size: int) -> None:
    """Mounts one bounded file system and binds a folder of it at each writable place."""
    mounted = root / "scratch"
    mounted.mkdir()
    mount(
        "tmpfs",
        str(mounted),
        "tmpfs",
        MS_NOSUID | MS_NODEV,
        f"size={size},nr_inodes={INODES},mode=0700",
    )
    for number, place in enumerate(
        sorted((root, *SCRATCH))
    ):  # parents first: the folder often lies in /tmp
        source, target = mounted / str(number), _inside(root, place)
        source.mkdir()
        source.chmod(0o700 if place == root else 0o1777)
        target.mkdir(parents=True)
        mount(str(source), str(target), None, MS_BIND)
    check("umount2", LIBC.umount2(str(mounted).encode(), MNT_DETACH))
    mounted.rmdir()


def _show(root: Path, place: Path, link: Path | None) -> None:
    target = _inside(root, place)
    if link is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(link)
    elif not root.is_relative_to(place):
        _bind(place, target)
        make_read_only(str(target))


def _add_devices(root: Path) -> None:
    for device in devices():
        _bind(device, _inside(root, device))
    for name, link in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{link}")


def _add_proc(root: Path, fresh: bool) -> None:
    proc = root / "proc"
    proc.mkdir()
    if fresh:
        mount("proc", str(proc), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    else:
        mount("/proc", str(proc), None, MS_BIND | MS_REC)
    for place in _kept(proc):
        mount(str(place), str(place), None, MS_BIND | MS_REC)
        make_read_only(str(place))


def _kept(proc: Path) -> list[Path]:
    """What uid 0 might write to without any capability, to be made read-only.

    The supervisor's folder, and all that belongs to no process: the machine's settings, the
    kernel's debug messages (`dynamic_debug`) and what else a kernel or a driver adds.
    """
    of_none = [
        place for place in proc.iterdir() if not place.name.isdigit() and not place.is_symlink()
    ]
    return [
        *(place for place in of_none if place.is_dir() or place.stat().st_mode & 0o222),
        proc / _SUPERVISOR,
    ]


def _bind(place: Path, target: Path) -> None:
    if place.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(place), str(target), None, MS_BIND | MS_REC)


def _inside(root: Path, place: Path) -> Path:
    return Path(f"{root}{place}")


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


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 for none."""
    return max(0, LIBC.syscall(_CREATE, None, 0, 1))


def scopes_signals() -> bool:
    """Whether a restricted process can signal only processes restricted with it."""
    return landlock_abi() >= _ABI_SCOPES


def restrict(scratch: Iterable[Path], tcp: bool = False, children: bool = False) -> None:
    """Restricts files with Landlock. Also forbids TCP and signals to other processes.

    The system and this Python may be read and executed; scratch folders and devices written.

    Args:
        scratch: What may be written.
        tcp: Whether TCP is allowed after all, for a network namespace.
        children: Whether child processes may use CUDA, too; only where /proc is its own.

    Raises:
        Refused: if the kernel has no Landlock.
    """
    version = landlock_abi()
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
    # uid 0 may write to /proc/sys without any capability, so only /proc/self is writable: CUDA
    # opens /proc/self/task/*/comm with O_TRUNC, or cuInit fails with error 304. A child has its own
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
