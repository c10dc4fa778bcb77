"""Which files a candidate sees, and which of those it may open.

With namespaces it gets its own root directory: read-only binds of what it may see, and one file
system in memory to write to. What is not bound has no path, so neither files nor Unix sockets of
the machine can be named. Landlock restricts how files may be opened, with or without namespaces.
"""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from kevin_env.judge.sandbox.readable import SCRATCH, Readable
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

DEVICES = ("null", "full", "random", "urandom", "nvidia*", "dxg")
"""What may be opened under /dev.

Disks may not: uid 0 needs no capability to write to one. Nor /dev/zero, whose shared mappings are
memory that no limit counts.
"""

PROC = (
    *("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "devices"),
    *("modules", "driver", "sys"),
)
"""What may be read under /proc besides a candidate's own processes.

The kernel's command line may hold tokens, and so may those of other processes.
"""


def devices(gpu: str | None = None, folder: Path = Path("/dev")) -> Iterator[Path]:
    """The devices of `DEVICES` that exist.

    CUDA opens the node of every GPU, even of those that CUDA_VISIBLE_DEVICES excludes. With four
    GPUs that takes 45 ms, under a lock of the driver that all processes of the host share.

    Args:
        gpu: The node of the only GPU among them, such as `nvidia0`, or empty; None: any GPU.
        folder: Where they are.
    """
    for path in (path for name in DEVICES for path in folder.glob(name)):
        if gpu is None or path.name == gpu or not _GPU.fullmatch(path.name):
            yield path


_GPU = re.compile(r"nvidia\d+")
SCRATCH_SIZE = 8 << 30
INODES = 1 << 20
_SUPERVISOR = "1"


def change_root(
    readable: Readable,
    folder: Path,
    size: int,
    fresh_proc: bool,
    gpu: str | None = None,
    writable: Iterable[Path] = (),
) -> tuple[Path, ...]:
    """In fresh namespaces: replaces the root directory.

    Args:
        readable: What it is to hold.
        folder: The candidate's empty folder; it has the same name afterwards.
        size: Bytes of memory that it may use. Writing fails at twice that.
        fresh_proc: Whether the process namespace is new, too, and needs a /proc.
        gpu: As of `devices`.
        writable: Folders of the machine that it may write to.

    Returns:
        The places to write to that are in memory, all of one file system.

    Raises:
        Refused: if the machine does not allow it.
    """
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", str(folder), "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=0755")
    _add_scratch(folder, min(2 * size, SCRATCH_SIZE))
    for place, link in readable.bound:
        _show(folder, place, link)
    for place in writable:
        _bind(place, _inside(folder, place))
    _add_devices(folder, gpu)
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


def _add_devices(root: Path, gpu: str | None) -> None:
    for device in devices(gpu):
        _bind(device, _inside(root, device))
    for name, link in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{link}")


def _add_proc(root: Path, fresh: bool) -> None:
    """Adds /proc: of what belongs to no process only `PROC`, and nothing of that for writing.

    Nor may anything be written to the supervisor's folder. uid 0 would need no capability for it.
    """
    proc = root / "proc"
    proc.mkdir()
    if fresh:
        mount("proc", str(proc), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    else:
        mount("/proc", str(proc), None, MS_BIND | MS_REC)
    closed_folder, closed_file = root / "folder", root / "file"
    closed_folder.mkdir()
    closed_file.touch()
    closed_folder.chmod(0)
    closed_file.chmod(0)
    for place in [*proc.iterdir(), proc / _SUPERVISOR]:
        if place.is_symlink() or (place.name.isdigit() and place.name != _SUPERVISOR):
            continue
        hidden = place.name not in (*PROC, _SUPERVISOR)
        closed = closed_folder if place.is_dir() else closed_file
        source = closed if hidden else place
        mount(str(source), str(place), None, MS_BIND | MS_REC)
        make_read_only(str(place))
    closed_folder.rmdir()
    closed_file.unlink()


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


def restrict(
    readable: Readable, scratch: Iterable[Path], device: str, own_proc: bool, tools: bool = False,
    gpu: str | None = None,
) -> None:  # fmt: skip
    """Restricts files with Landlock. Also forbids TCP and signals to other processes.

    Args:
        readable: What may be read and executed.
        scratch: What may be written.
        device: `cpu` or `cuda:0`.
        own_proc: Whether /proc shows no processes but the candidate's.
        tools: Whether TCP is allowed after all, in a network namespace, and child processes may
            use CUDA, too, if `own_proc`.
        gpu: As of `devices`.

    Raises:
        Refused: if the kernel has no Landlock.
    """
    version = landlock_abi()
    if not version:
        raise Refused("this kernel has no Landlock")
    handled = _RIGHTS_BY_ABI[min(version, 5)]
    attributes = [handled, 0 if tools else _ALL_TCP, _ABSTRACT_SOCKETS | _SIGNALS]
    known = attributes[: 1 + (version >= _ABI_TCP) + (version >= _ABI_SCOPES)]
    packed = struct.pack(f"{len(known)}Q", *known)
    ruleset = check("landlock_create_ruleset", LIBC.syscall(_CREATE, packed, len(packed), 0))
    _allow_files(ruleset, handled, readable, scratch, gpu)
    _allow_proc(ruleset, handled, device, own_proc, tools)
    prctl(_NO_NEW_PRIVS, 1)
    check("landlock_restrict_self", LIBC.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _allow_files(
    ruleset: int, handled: int, readable: Readable, scratch: Iterable[Path], gpu: str | None
) -> None:
    for place in readable.places:
        _allow(ruleset, place, (_EXECUTE | _READ_FILE | _READ_DIR) & handled)
    for place in scratch:
        _allow(ruleset, place, handled)
    _allow(ruleset, Path("/dev"), _READ_DIR)
    for place in devices(gpu):
        _allow(ruleset, place, (_READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV) & handled)


def _allow_proc(ruleset: int, handled: int, device: str, own_proc: bool, tools: bool) -> None:
    """Without a /proc of their own, candidates read their first process's folder and `PROC`.

    CUDA opens /proc/self/task/*/comm with O_TRUNC, or cuInit fails with error 304; a child has a
    folder of its own. On a CPU nothing may be written: not the rank for the OOM killer either.
    """
    read, write = (_READ_FILE | _READ_DIR) & handled, (_WRITE_FILE | _TRUNCATE) & handled
    own = Path("/proc") if own_proc else Path("/proc/self")
    for place in (own, *(Path("/proc", name) for name in PROC)):
        _allow(ruleset, place, read)
    if device != "cpu":
        _allow(ruleset, own if tools else Path("/proc/self"), read | write)


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
