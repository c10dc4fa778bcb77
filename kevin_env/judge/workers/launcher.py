"""Where candidates come from: the judge's handle on its fork server, and their folders.

A judge holds a lock on each folder for as long as it lives, so a folder that can be locked is left
over from a judge that was killed. It contains the candidate's own folder and the paths of its
control groups, which may lie where another judge would not look.
"""

import fcntl
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, Late, WireError
from kevin_env.judge.api import JudgeError
from kevin_env.judge.sandbox import cgroups
from kevin_env.judge.sandbox.attempts import Canary
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.sandbox.readable import check_named, find_readable
from kevin_env.judge.waiting import waiting

PREFIX = "kevin-run-"
_GROUPS = "groups"

_LOG = logging.getLogger(__name__)


class Folder:
    """A fresh folder for one candidate, locked until it is removed.

    Attributes:
        path: The candidate's own folder, in the one that is locked.
        groups: Where its control groups are to be made.
    """

    def __init__(self) -> None:
        self._whole, self._lock = _locked_folder()
        self.path = self._whole / "files"
        self.path.mkdir(mode=0o700)
        self.groups = [str(home / self._whole.name) for home in cgroups.homes()]
        with suppress(OSError):  # the disk may be full
            (self._whole / _GROUPS).write_text("\n".join(self.groups))

    @property
    def environment(self) -> dict[str, str]:
        """Variables that keep its candidate's caches and temporary files in this folder."""
        caches = {
            "HOME": "", "TMPDIR": "", "XDG_CACHE_HOME": "cache", "TRITON_CACHE_DIR": "triton",
            "TRITON_HOME": "", "TORCH_EXTENSIONS_DIR": "extensions",
            "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda",
            "TILELANG_CACHE_DIR": "tilelang", "CUTE_DSL_CACHE_DIR": "cute",
            "CUDA_TILE_CACHE_DIR": "cutile",
        }  # fmt: skip
        return {name: str(self.path / sub) for name, sub in caches.items()} | {
            "PYTHONDONTWRITEBYTECODE": "1", "TILELANG_PRINT_ON_COMPILATION": "0",
            "HELION_AUTOTUNE_EFFORT": "none",
        }  # fmt: skip

    def remove(self) -> None:
        """Removes it, its content and the candidate's control group. Idempotent."""
        cgroups.remove(self.groups)
        shutil.rmtree(self._whole, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def sweep() -> None:
    """Removes folders and control groups of this user's judges that are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid():
                _remove_if_unlocked(folder)
    cgroups.sweep(PREFIX)


def _locked_folder() -> tuple[Path, int]:
    """A new folder and the descriptor that locks it; not one that was swept before that."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # some network file systems lock no folders; then `sweep` cannot lock it either
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _remove_if_unlocked(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):
            cgroups.remove((folder / _GROUPS).read_text().splitlines())
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


START_SECONDS = 180.0
ANSWER_SECONDS = 30.0
"""For a fork, which takes milliseconds; a fork server that needs longer is stopped or hangs."""
_PASSED = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "PYTHONPATH"),
    *("CC", "CXX", "LANG", "OMP_WAIT_POLICY", "XDG_CACHE_HOME"),
    *("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"),
)
END_SECONDS = 10.0

QUEUES = {"CUDA_DEVICE_MAX_CONNECTIONS": "4", "CUDA_DEVICE_MAX_COPY_CONNECTIONS": "1"}
"""Hardware queues of a candidate's context for kernels and for copies; CUDA's defaults are eight.

The driver creates and destroys contexts one at a time, and takes longer for those with more queues.
With fewer queues than streams, some streams wait for each other.
"""


class ForkServer:
    """The process that candidates are forked from. One per judge; thread-safe.

    It is not waited for before the first fork, so it imports its modules while the judge does.

    Args:
        device: `cpu` or `cuda`.
        level: The best sandbox level to try.
        readable: Places that candidates may read besides those of `find_readable`; by default
            those that `KEVIN_ENV_READABLE` names.
        module: What it imports besides, if it is there.
    """

    def __init__(
        self, device: str, level: LevelName = "root", readable: Sequence[str] | None = None,
        module: str = "",
    ) -> None:  # fmt: skip
        sweep()
        readable = check_named(readable)
        self._folder = Folder()
        self._canary = Canary(self._folder.path, find_readable(readable))
        parent, child = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # otherwise importing cpp_extension starts CUDA before the fork
        environment |= {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"} | QUEUES
        environment |= {"TMPDIR": str(self._folder.path)}
        if device == "cpu":
            environment |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        program = "kevin_env.judge.workers.forkserver"
        arguments = [str(child.fileno()), level, module, *readable]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", program, *arguments],
                pass_fds=(child.fileno(),), env=environment, stdin=subprocess.DEVNULL, cwd="/",
            )  # fmt: skip
        except BaseException:  # the judge is being ended
            self._folder.remove()
            raise
        child.close()
        self._channel = Channel(parent)
        self._lock = threading.Lock()
        self._due = 1
        """Number of ready messages still to come."""

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def warm(self, capability: str) -> None:
        """Warms Triton's compiler for a GPU, such as `9.0`, before the next fork."""
        with self._lock, suppress(Closed):  # if it is gone, the next fork fails
            self._due += 1
            self._channel.send({"warm": capability})

    def fork(self, order: dict[str, Any], fds: tuple[int, ...]) -> None:
        """Starts one candidate.

        Raises:
            JudgeError: if the fork server did not start or does not answer; then it is killed.
        """
        with self._lock:
            try:
                with waiting("a fork server to start"):
                    self._wait(START_SECONDS)
                self._channel.send(order | {"targets": self._canary.targets}, fds, ANSWER_SECONDS)
                self._due += 1
                self._wait(ANSWER_SECONDS)
            except WireError as error:
                self._kill()
                text = "the fork server did not start, or is gone; its own message is on stderr"
                if isinstance(error, Late):
                    text = f"the fork server does not answer: {error}"
                    _LOG.warning("%s; it is replaced", text)
                raise JudgeError(text) from error

    def _wait(self, seconds: float) -> None:
        """Waits until it is ready."""
        while self._due:
            self._channel.receive(seconds)
            self._due -= 1

    def _kill(self) -> None:
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # a hanging file system may keep it alive
            self._process.wait(END_SECONDS)

    def close(self) -> None:
        """Ends it; candidates live on until their workers are closed."""
        self._kill()
        self._channel.close()
        self._canary.close()
        self._folder.remove()
