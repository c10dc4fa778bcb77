"""The folders of candidates, and what is left of them when a judge was killed.

A judge holds a lock on each folder for as long as it lives, so a folder that can be locked is
nobody's.
"""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from kevin_env.judge.sandbox import groups

PREFIX = "kevin-run-"
YOUNG_SECONDS = 60.0
"""A folder is not locked in the instant in which it is made."""


class Folder:
    """A fresh folder for one candidate, locked until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(
            OSError
        ):  # some network file systems lock no folders; then nobody can take it for a leftover
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def environment(self) -> dict[str, str]:
        """Where its candidate's caches and temporary files go: nothing outlives it, nothing was
        there before.
        """
        caches = {
            "HOME": "", "TMPDIR": "", "XDG_CACHE_HOME": "cache", "TRITON_CACHE_DIR": "triton", "TRITON_HOME": "",
            "TORCH_EXTENSIONS_DIR": "extensions", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda",
        }  # fmt: skip
        return {name: str(self.path / sub) for name, sub in caches.items()} | {
            "PYTHONDONTWRITEBYTECODE": "1"
        }

    def remove(self) -> None:
        """Removes it with all that is in it, and the candidate's control group. Twice is fine."""
        groups.remove(self.path.name)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def sweep() -> None:
    """Removes the folders of this user's judges that are gone, and the groups that go with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid == os.geteuid() and found.st_ctime < time.time() - YOUNG_SECONDS:
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        groups.remove(folder.name)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
