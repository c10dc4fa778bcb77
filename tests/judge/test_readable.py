"""What a candidate may read is an allowlist: nothing of a user's, whatever `sys.path` holds."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from judges import Lent
from loaded import MEMORY, SECONDS

from kevin_env.judge.sandbox.attempts import PROTECTIONS, Canary
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.sandbox.readable import NAME, check_named, find_readable
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker

INSTALLED = "installed/__init__.py"
LEVELS: tuple[LevelName, ...] = ("root", "user", "container", "landlock")
TRY = """
import os, pathlib, subprocess, sys
def look(path):
    try:
        return "READ" if pathlib.Path(path).read_bytes() else "empty"
    except OSError:
        return "closed"
print(*(look(path) for path in {paths}))
class ModelNew: pass
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trainer's checkout."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "lib").mkdir()
    (folder / "named").mkdir()
    for package in ("src", "installed", "installed-1.0.dist-info", "editable.egg-info"):
        (folder / package).mkdir()
    for name in (
        ".env",
        "trainer.py",
        "src/a.py",
        "lib/key.pem",
        "lib/libours.so.1",
        "named/kernel.h",
        INSTALLED,
    ):
        (folder / name).write_text("of the user")
    (folder / "installed-1.0.dist-info/METADATA").write_text("Name: installed\nVersion: 1.0\n")
    (folder / "installed-1.0.dist-info/RECORD").write_text(f"{INSTALLED},,\n../x/y.py,,\n.env,,\n")
    (folder / "editable.egg-info/PKG-INFO").write_text("Name: editable\nVersion: 1.0\n")
    (folder / "editable.egg-info/SOURCES.txt").write_text("src/a.py\n")
    return folder


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[ForkServer]:
    """With every kind of entry that names a folder of the user."""
    with pytest.MonkeyPatch.context() as changed:
        changed.chdir(project)
        changed.setenv("HOME", str(project))
        changed.setenv("PYTHONPATH", f":{project}:.:{os.environ.get('PYTHONPATH', '')}")
        changed.setenv("LD_LIBRARY_PATH", f":.:{project}/lib")
        server = ForkServer("cpu", readable=[str(project / "named")])
        yield server
        server.close()


def looked(server: ForkServer, level: LevelName, paths: list[str]) -> list[str]:
    """What a candidate says of each path: READ or closed."""
    worker = Worker(Lent(server, level), "cpu", MEMORY)
    with contextlib.closing(worker):
        if worker.level != level:
            pytest.skip(f"no level {level} here")
        code = TRY.format(paths=paths)
        worker.ask("load", SECONDS, path=worker.path, code=code, entry="ModelNew")
    return worker.log.split()


@pytest.mark.parametrize("level", LEVELS)
def test_no_entry_of_a_search_path_opens_files_of_the_user(
    server: ForkServer, project: Path, level: LevelName
) -> None:
    files = [str(project / name) for name in (".env", "trainer.py", "src/a.py", "lib/key.pem")]
    system = ["/etc/shadow", "/etc/hostname", "/proc/cmdline", f"/proc/{os.getpid()}/cmdline"]
    assert looked(server, level, files + system) == ["closed"] * 8


@pytest.mark.parametrize("level", LEVELS)
def test_what_kernels_are_built_with_is_open(
    server: ForkServer, project: Path, level: LevelName
) -> None:
    opened = [os.__file__, pytest.__file__, "/bin/sh", "/proc/cpuinfo", "/proc/self/maps"]
    opened += [str(project / name) for name in ("named/kernel.h", "lib/libours.so.1", INSTALLED)]
    assert looked(server, level, opened) == ["READ"] * len(opened)


def test_everything_is_tried_against_files_of_the_user(server: ForkServer, project: Path) -> None:
    worker = Worker(server, "cpu", MEMORY, attempt="everything")
    worker.close()
    assert {str(project / ".env"), str(project / "trainer.py")} <= set(
        server._canary.targets["files"]
    )
    assert set(worker.held) == set(PROTECTIONS)


def test_an_environment_made_in_the_folder_of_a_project_opens_its_parts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "lib", "src"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    found = find_readable().places
    assert {tmp_path / "bin", tmp_path / "lib"} <= set(found)
    assert not {tmp_path, tmp_path / "src"} & set(found)


def test_a_user_needs_neither_a_home_nor_a_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a numeric user of a container, for which /etc/passwd has no line."""

    def unknown(_: int) -> None:
        raise KeyError

    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    canary = Canary(tmp_path, find_readable())
    canary.close()
    assert "/etc/hostname" in canary.targets["files"]


def test_an_operator_names_places_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, f"{tmp_path}::/usr")
    assert check_named(None) == (str(tmp_path), "/usr")
    assert check_named([]) == () and check_named(str(tmp_path)) == (str(tmp_path),)
    for wrong in ("relative", "", str(tmp_path / "missing")):
        with pytest.raises(ValueError, match="name absolute paths of files and folders that exist"):
            check_named([wrong])
