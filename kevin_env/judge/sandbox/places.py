"""Which parts of the machine a candidate sees."""

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

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
"""What may be opened under /dev. Disks, above all, may not: uid 0 needs no capability to write to
one. Nor /dev/zero, whose shared mappings are memory that no limit counts.
"""

SCRATCH = (Path("/dev/shm"), Path("/tmp"))
"""What everyone may write to on any machine; a candidate gets its own. Someone may have all of /tmp
on PYTHONPATH.
"""


@functools.cache
def readable() -> tuple[Path, ...]:
    """The system, this Python, CUDA. Of a source checkout of ours only what a candidate imports."""
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
    """What of `readable` has to be shown for all of it to be there, under its own name and the one
    that links lead to.

    Each place with what it says if it is a link; what lies inside another one is left out.
    """
    found: dict[Path, Path | None] = {}
    for place in sorted({*readable(), *(place.resolve() for place in readable())}):
        covered = any(parent in found and found[parent] is None for parent in place.parents)
        if not covered and not any(scratch.is_relative_to(place) for scratch in SCRATCH):
            found[place] = place.readlink() if place.is_symlink() else None
    return tuple(found.items())


def devices() -> Iterator[Path]:
    """What there is of `DEVICES`."""
    return (found for name in DEVICES for found in Path("/dev").glob(name))
