"""What is left of candidates when a judge is killed, and that the next one removes it and nothing
else.
"""

import os
import shutil
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
group = Group(folder.groups, 1 << 30)
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed() -> Path:
    """The candidate's folder that a judge which was killed has left."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    folder = Path(done.stdout.strip())
    assert folder.is_dir()
    return folder


def groups(folder: Path) -> list[Path]:
    """The control groups of a candidate with this folder that are there."""
    return [home for home in cgroups.homes() if (home / folder.parent.name).exists()]


def test_what_a_killed_judge_left_is_removed() -> None:
    folder = killed()
    sweep()
    assert not folder.parent.exists() and not groups(folder)


def test_what_is_in_use_stays() -> None:
    folder = Folder()
    group = Group(folder.groups, 1 << 30)
    sweep()
    assert folder.path.is_dir() and groups(folder.path) == cgroups.homes()
    group.close()
    folder.remove()
    assert not folder.path.parent.exists() and not groups(folder.path)


def test_a_folder_is_whole_though_another_judge_sweeps_before_it_is_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def made_and_swept(**options: str) -> str:
        made.append(make(**options))
        if len(made) == 1:
            sweep()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_swept)
    folder = Folder()
    assert folder.path.is_dir() and len(made) == 2
    folder.remove()


needs_group = pytest.mark.skipif(not cgroups.homes(), reason="no control group can be made here")


@needs_group
def test_a_group_that_another_judge_could_not_see_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = killed()
    assert groups(folder)
    with monkeypatch.context() as patched:
        patched.setattr(cgroups, "homes", list)  # this judge's own groups lie elsewhere
        sweep()
    assert not groups(folder)


@needs_group
def test_a_group_whose_folder_somebody_removed_is_removed() -> None:
    folder = killed()
    shutil.rmtree(folder.parent)
    sweep()
    assert not groups(folder)


def test_what_belongs_to_others_stays() -> None:
    place = Path(tempfile.gettempdir())
    other, link, mine = place / "kevin-other", place / f"{PREFIX}link", place / "target"
    other.mkdir()
    mine.mkdir()
    link.symlink_to(mine)
    sweep()
    assert other.is_dir() and mine.is_dir() and link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to give a folder to somebody else")
def test_folders_of_another_user_stay() -> None:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    os.chown(folder, 65534, 65534)
    sweep()
    assert folder.is_dir()
