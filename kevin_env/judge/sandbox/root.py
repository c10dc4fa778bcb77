"""A root directory of the candidate's own: read-only binds of what it may see, and one file system
in memory to write.

What is not bound has no path, so neither files nor Unix sockets of the machine can be named.
"""

from pathlib import Path

from kevin_env.judge.sandbox.places import SCRATCH, devices, shown
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
    check,
    make_read_only,
    mount,
    pivot_root,
)  # fmt: skip

SCRATCH_SIZE = 8 << 30
INODES = 1 << 20
_KEEPER = "1"


def change_root(folder: Path, size: int, fresh_proc: bool) -> tuple[Path, ...]:
    """In fresh namespaces: replaces the root directory.

    Args:
        folder: The candidate's own folder, an empty one; it has the same name afterwards.
        size: Bytes of memory that it may use; what it writes may take twice that before writing
            fails.
        fresh_proc: Whether the process namespace is new, too, and needs a /proc.

    Returns:
        The places that can be written to, all of one file system.

    Raises:
        Refused: when the machine does not allow it.
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
    """Mounts one bounded file system and shows a folder of it at each place that can be written to."""
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
    """What uid 0 might write to without any capability: the keeper's own, and all that is of no
    process.

    The machine's settings, the kernel's debug messages (`dynamic_debug`) and what else a kernel or
    a driver puts there.
    """
    of_none = [
        place for place in proc.iterdir() if not place.name.isdigit() and not place.is_symlink()
    ]
    return [
        *(place for place in of_none if place.is_dir() or place.stat().st_mode & 0o222),
        proc / _KEEPER,
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
