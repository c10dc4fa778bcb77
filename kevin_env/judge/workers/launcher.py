"""The folders of candidates, and what is left of them when a judge was killed.

A judge holds a lock on each folder for as long as it lives, so a folder that can be locked is
nobody's.

The judge's handle on its fork server, the process that candidates come from.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from kevin_env.candidate.wire import Channel, Closed, WireError
from kevin_env.judge.api import JudgeError
from kevin_env.judge.sandbox import cgroups
from kevin_env.judge.sandbox.levels import LevelName

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
        cgroups.remove(self.path.name)
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


QUEUES = "4"
"""Hardware queues of a candidate's context, of which CUDA makes eight by default: a context takes
as much longer to make and to end as it has more, and programs with more streams than queues have
some of them wait for each other.
"""


class ForkServer:
    """The process that candidates are forked from. One per judge, safe to use from many threads.

    Nobody waits for it before the first fork, so that it imports what it needs while the judge
    does.

    Args:
        device: `cpu` or `cuda`.
        level: The best level of the sandbox that is tried.
    """

    def __init__(self, device: str, level: LevelName = "root") -> None:
        sweep()
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = (
            "1"  # else importing cpp_extension starts CUDA before the fork
        )
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = QUEUES
        if device == "cpu":
            environment |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kevin_env.judge.workers.forkserver", str(theirs.fileno()), level],
            pass_fds=(theirs.fileno(),), env=environment, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        theirs.close()
        self._channel = Channel(ours)
        self._lock = threading.Lock()
        self._due = 1
        """How often it has yet to say that it is ready."""

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def warm(self, capability: str) -> None:
        """Has it make Triton's compiler ready for a GPU, such as `9.0`, before it forks again."""
        with self._lock, suppress(Closed):  # if it is gone, whoever forks next finds out
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
                self._channel.send(order, fds)
            except Closed as error:
                raise JudgeError("the fork server is gone") from error

    def _wait(self) -> None:
        """Until it is ready: who waits for a candidate, waits for no imports and no compiler."""
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
