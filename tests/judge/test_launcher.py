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


def test_what_a_killed_judge_left_is_removed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    folder = Path(done.stdout.strip())
    assert done.returncode == -signal.SIGKILL and folder.is_dir()
    sweep(young=-1.0)
    assert not folder.exists()
    assert not any((home / folder.name).exists() for home in cgroups.homes())


def test_what_is_in_use_stays() -> None:
    folder = Folder()
    group = Group(folder.path.name, 1 << 30)
    sweep(young=-1.0)
    assert folder.path.is_dir()
    assert all((home / folder.path.name).is_dir() for home in cgroups.homes())
    group.close()
    folder.remove()
    assert not folder.path.exists()


def test_what_was_made_a_moment_ago_stays() -> None:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    sweep()
    assert folder.is_dir()


def test_what_belongs_to_others_stays() -> None:
    place = Path(tempfile.gettempdir())
    other, link, mine = place / "kevin-other", place / f"{PREFIX}link", place / "target"
    other.mkdir()
    mine.mkdir()
    link.symlink_to(mine)
    sweep(young=-1.0)
    assert other.is_dir() and mine.is_dir() and link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to give a folder to somebody else")
def test_folders_of_another_user_stay() -> None:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    os.chown(folder, 65534, 65534)
    sweep(young=-1.0)
    assert folder.is_dir()
