"""Which places a candidate may read and execute: an allowlist.

It holds what kernels are built and run with: parts of the system, Python installations, torch,
compilers and CUDA. A folder is never added because it is on `sys.path`: a checkout has an `.env`
beside its modules. Everything else is closed, unless the operator names it.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/share", "/sys", "/nix/store"),
    *("/opt/nvidia", "/run/opengl-driver", "/etc/alternatives", "/etc/nvidia"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/os-release"),
)
INSTALLATIONS = ("/usr", "/usr/local", "/usr/local/nvidia")
PARTS = (
    *("bin", "sbin", "lib*", "include", "pyvenv.cfg", "*-linux-gnu*"),  # Python, compilers, Conda
    *("nvvm", "targets", "extras", "compat", "compute-sanitizer", "nsight-compute*"),  # CUDA
    *("version.json", "nvml"),
)
"""What is readable of an installation. Its folder may be a user's: `python -m venv .`."""
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "ninja", "nvcc", "tileiras")
PACKAGES = ("torch", "triton")
"""Readable where they lie, also if they are not in `site-packages`."""
NAME = "KEVIN_ENV_READABLE"
"""The environment variable in which an operator names more places, separated by colons."""

SCRATCH = (Path("/dev/shm"), Path("/tmp"))
"""World-writable on any machine; a candidate gets its own."""


@dataclass(frozen=True)
class Readable:
    """The places that candidates may read.

    Attributes:
        places: Files and folders that exist.
        bound: What has to be bound for all of them to exist under their names and link targets:
            each with its target if it is a link. Places inside another one are left out.
    """

    places: tuple[Path, ...]
    bound: tuple[tuple[Path, Path | None], ...]


def find_readable(named: Iterable[str] = ()) -> Readable:
    """What candidates of this process may read.

    Args:
        named: More places, by the operator.
    """
    places = {*map(Path, SYSTEM)}
    # A name below a link to a folder, such as /bin/sh, would be made in the folder itself.
    places.update(Path(each).parent.resolve() / Path(each).name for each in named)
    for root in _installations():
        places.update(part for name in PARTS for part in root.glob(name))
    places.update(_python())
    places = {place for place in places if place.exists()}
    places.update(_libraries(places))
    return Readable(tuple(sorted(places)), tuple(_bound(places)))


def check_named(named: str | Sequence[str] | None) -> tuple[str, ...]:
    """The places that an operator names, or those of `KEVIN_ENV_READABLE`.

    Raises:
        ValueError: if one is no absolute path of a file or folder that exists.
    """
    what = NAME if named is None else "readable"
    if named is None:
        named = [each for each in os.environ.get(NAME, "").split(":") if each]
    named = [named] if isinstance(named, str) else named
    for each in named:
        if not Path(each).is_absolute() or not Path(each).exists():
            text = f"{what} has {each!r}; name absolute paths of files and folders that exist"
            raise ValueError(text)
    return tuple(map(str, named))


def user_folders() -> list[Path]:
    """Home and working folder, as far as there are any."""
    found = list[Path]()
    for find in (Path.home, Path.cwd):
        with suppress(RuntimeError, OSError):  # a numeric user has no home; a folder may be gone
            found.append(find())
    return found


def _installations() -> Iterator[Path]:
    """The folders above `bin` and `lib` of this Python, CUDA and the compilers on PATH."""
    yield from map(Path, (*INSTALLATIONS, sys.prefix, sys.base_prefix, sys.exec_prefix))
    yield from Path("/usr/local").glob("cuda*")
    homes = (os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH"))
    yield from (Path(home) for home in homes if Path(home).is_absolute())
    tools = (*COMPILERS, *filter(None, map(os.environ.get, ("CC", "CXX"))))
    for tool in filter(None, map(shutil.which, tools)):
        for place in (Path(tool).absolute(), Path(tool).resolve()):
            if place.parent.name == "bin" and place.parent.parent not in user_folders():
                yield place.parent.parent


def _python() -> Iterator[Path]:
    """Installed packages, and of this package what a candidate imports."""
    for entry in (each for each in map(Path, sys.path) if each.is_absolute()):
        if entry.name in ("site-packages", "dist-packages"):
            yield entry
        else:  # such as `pip install --target`, where other files may lie beside
            yield from (entry / name for name in _installed_in(entry))
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        yield from map(Path, (found and found.submodule_search_locations) or ())
    own = Path(__file__).parents[2]
    yield from (own / name for name in ("candidate", "extension", "languages.py"))


def _installed_in(folder: Path) -> set[str]:
    """The packages of distributions that were installed in a folder, not in place (`egg-info`)."""
    found = (metadata.Distribution.at(place) for place in folder.glob("*.dist-info"))
    names = {file.parts[0] for each in found for file in each.files or () if len(file.parts) > 1}
    return names - {"..", "/"}


def _libraries(known: Iterable[Path]) -> Iterator[Path]:
    """The shared libraries in the folders of LD_LIBRARY_PATH, and nothing beside them."""
    known = set(known)
    for entry in map(Path, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        if entry.is_absolute() and known.isdisjoint((entry, *entry.parents)):
            yield from (each for each in entry.glob("lib*.so*") if each.is_file())


def _bound(places: Iterable[Path]) -> Iterator[tuple[Path, Path | None]]:
    targets: dict[Path, Path | None] = {}
    for place in sorted({*places, *(place.resolve() for place in places)}):
        covered = any(parent in targets and targets[parent] is None for parent in place.parents)
        if not covered and not any(scratch.is_relative_to(place) for scratch in SCRATCH):
            targets[place] = place.resolve() if place.is_symlink() else None
    yield from targets.items()
