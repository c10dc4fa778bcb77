"""What is left of candidates when a judge is killed, and that the next one removes it and nothing
else.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kevin_env.judge.sandbox import cgroups
from kevin_env.judge.sandbox.cgroups import Group
from kevin_env.judge.workers import launcher
from kevin_env.judge.workers.launcher import PREFIX, Folder, sweep

KILLED = """
import os, signal
from kevin_env.judge.workers.launcher import Folder
from kevin_env.judge.sandbox.cgroups import Group
folder = Folder()
(folder.path / "large").write_text("x")
group = Group(folder.path.name, 1 << 30)
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def grown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A place of this test's own, in which every folder is old enough."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(launcher, "YOUNG_SECONDS", -1.0)


def test_what_a_killed_judge_left_is_removed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    folder = Path(done.stdout.strip())
    assert done.returncode == -signal.SIGKILL and folder.is_dir()
    sweep()
    assert not folder.exists()
    assert not any((home / folder.name).exists() for home in cgroups.homes())


def test_what_is_in_use_stays() -> None:
    folder = Folder()
    group = Group(folder.path.name, 1 << 30)
    sweep()
    assert folder.path.is_dir()
    assert all((home / folder.path.name).is_dir() for home in cgroups.homes())
    group.close()
    folder.remove()
    assert not folder.path.exists()


def test_what_was_made_a_moment_ago_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "YOUNG_SECONDS", 60.0)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    sweep()
    assert folder.is_dir()


def test_what_belongs_to_others_stays(tmp_path: Path) -> None:
    other, link, mine = tmp_path / "kevin-other", tmp_path / f"{PREFIX}link", tmp_path / "target"
    other.mkdir()
    mine.mkdir()
    link.symlink_to(mine)
    sweep()
    assert other.is_dir() and mine.is_dir() and link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to give a folder to somebody else")
def test_folders_of_another_user_stay(tmp_path: Path) -> None:
    folder = tmp_path / f"{PREFIX}x"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    sweep()
    assert folder.is_dir()
