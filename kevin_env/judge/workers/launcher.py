"""Where candidates come from: the judge's handle on its fork server, and their folders.

A judge holds a lock on each folder for as long as it lives, so a folder that can be locked is left
over from a judge that was killed.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.api import JudgeError
from kevin_env.judge.sandbox import cgroups
from kevin_env.judge.sandbox.attempts import Canary
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.sandbox.readable import find_readable

PREFIX = "kevin-run-"
YOUNG_SECONDS = 60.0
"""A new folder is not locked at once."""


class Folder:
    """A fresh folder for one candidate, locked until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # some network file systems lock no folders; then `sweep` cannot lock it either
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that keep its candidate's caches and temporary files in this folder."""
        caches = {
            "HOME": "", "TMPDIR": "", "XDG_CACHE_HOME": "cache", "TRITON_CACHE_DIR": "triton",
            "TRITON_HOME": "", "TORCH_EXTENSIONS_DIR": "extensions",
            "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda",
        }  # fmt: skip
        return {name: str(self.path / sub) for name, sub in caches.items()} | {
            "PYTHONDONTWRITEBYTECODE": "1"
        }

    def remove(self) -> None:
        """Removes it, its content and the candidate's control group. Idempotent."""
        cgroups.remove(self.path.name)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def sweep(young: float = YOUNG_SECONDS) -> None:
    """Removes folders and control groups of this user's judges that are gone.

    Folders that are younger than `young` seconds stay: their judge may not have locked them yet.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            stat = folder.lstat()
            if stat.st_uid == os.geteuid() and stat.st_ctime < time.time() - young:
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        cgroups.remove(folder.name)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


START_SECONDS = 180.0
_PASSED = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "PYTHONPATH"),
    *("CC", "CXX", "LANG", "OMP_WAIT_POLICY"),
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
        readable: Places that candidates may read besides those of `find_readable`.
    """

    def __init__(
        self, device: str, level: LevelName = "root", readable: Sequence[str] = ()
    ) -> None:
        sweep()
        self._folder = Folder()
        self._canary = Canary(self._folder.path, find_readable(readable))
        parent, child = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # otherwise importing cpp_extension starts CUDA before the fork
        environment |= {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"} | QUEUES
        if device == "cpu":
            environment |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        module = "kevin_env.judge.workers.forkserver"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(child.fileno()), level, *readable],
            pass_fds=(child.fileno(),), env=environment, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
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
            JudgeError: if the fork server did not start, or is gone.
        """
        with self._lock:
            self._wait()
            try:
                self._channel.send(order | {"targets": self._canary.targets}, fds)
            except Closed as error:
                raise JudgeError("the fork server is gone") from error

    def _wait(self) -> None:
        """Waits until it is ready."""
        try:
            while self._due:
                self._channel.receive(START_SECONDS)
                self._due -= 1
        except WireError as error:
            raise JudgeError(
                "the fork server did not start; its own message is on stderr"
            ) from error

    def close(self) -> None:
        """Ends it; candidates live on until their workers are closed."""
        if self._due:  # it has forked nothing, and need not import to the end
            self._process.kill()
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._process.kill()
        self._process.wait()
        self._canary.close()
        self._folder.remove()
