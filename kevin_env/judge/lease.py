"""The device lease: access to the device across the threads and processes of this machine.

It is shared by everything that runs on the device, and exclusive for the fraction of a second in
which times are measured. A holder of the shared lease asks between calls whether an exclusive one
is wanted. During a long call it cannot, as kernels on a GPU go on: meanwhile newcomers may share
the device. Ending contexts needs no lease. File locks implement it, so that a process that dies
releases it.

Until the device is quiet takes as long as timing a submission, so exclusive leases follow each
other directly where several are wanted, and `Gathering` has them wanted at the same time.
"""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from kevin_env.judge.lane.lane import holder_of
from kevin_env.judge.waiting import waiting

STEP = 5e-4
"""Seconds between two attempts to lock the device."""


class Lease:
    """The lease of one device.

    Args:
        device: A name that all processes agree on, such as a GPU's UUID; `cpu` for the processor.
    """

    def __init__(self, device: str) -> None:
        folder = Path(tempfile.gettempdir()) / f"kevin-env-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = folder / f"{device}.lease"
        self._gate = folder / f"{device}.gate"
        self._long = folder / f"{device}.long"
        self._users = folder / f"{device}.users"
        self._next = folder / f"{device}.next"

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Holds the device together with others."""
        with self._telling():
            with _locked(self._next, fcntl.LOCK_EX):  # those that wait for exclusive go first
                pass
            with _locked(self._gate, fcntl.LOCK_SH):  # closed while anyone waits for exclusive
                lock = _locked(self._file, fcntl.LOCK_SH)
                lock.__enter__()
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def wanted(self) -> bool:
        """Whether anyone holds the exclusive lease or waits for it."""
        return not _free(self._gate, fcntl.LOCK_SH)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Marks a submission as being judged, whether or not it is on the device."""
        with _locked(self._users, fcntl.LOCK_SH):
            yield

    def idle(self) -> bool:
        """Whether no submission is being judged on this device. Call outside `in_use`."""
        return _free(self._users, fcntl.LOCK_EX)

    @contextmanager
    def long_call(self) -> Iterator[None]:
        """Marks a call during which the shared lease is not released. Hold it shared."""
        with _locked(self._long, fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Holds the device alone. Newcomers wait meanwhile, except during long calls."""
        with ExitStack() as held:
            with self._telling():
                while not self._taken_alone(held):
                    with _locked(self._long, fcntl.LOCK_EX):
                        pass
            yield

    def _telling(self) -> AbstractContextManager[None]:
        files = (self._file, self._gate, self._long, self._next)
        return waiting(
            f"the device lock {self._file}", lambda: next(filter(None, map(holder_of, files)), "")
        )

    def _taken_alone(self, held: ExitStack) -> bool:
        """Waits until it holds the device alone; False if a long call is in progress."""
        with ExitStack() as trying:
            with _locked(self._next, fcntl.LOCK_SH):
                trying.enter_context(_locked(self._gate, fcntl.LOCK_EX))
            while _free(self._long, fcntl.LOCK_EX):
                with suppress(BlockingIOError):
                    trying.enter_context(_locked(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB))
                    held.enter_context(trying.pop_all())
                    return True
                time.sleep(STEP)
        return False


GATHERING_SECONDS = 0.3
"""Seconds a submission waits for others to be timed with."""


class Gathering:
    """Lets submissions that share a device be timed one directly after the other. Thread-safe.

    Args:
        most: How many are waited for.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._coming: set[object] = set()
        self._ready: set[object] = set()
        self._changed = threading.Condition()

    def add(self, one: object) -> None:
        """Notes that a submission is on the device."""
        with self._changed:
            self._coming.add(one)

    def remove(self, one: object) -> None:
        """Notes that a submission has been timed, or will not be. Several times are allowed."""
        with self._changed:
            self._coming.discard(one)
            self._ready.discard(one)
            self._changed.notify_all()

    def wait(self, one: object) -> None:
        """Waits until enough of those on the device are ready to be timed, but not for long."""
        with self._changed:
            self._ready.add(one)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: len(self._ready) >= min(self._most, len(self._coming)), GATHERING_SECONDS
            )


def _free(file: Path, how: int) -> bool:
    try:
        with _locked(file, how | fcntl.LOCK_NB):
            return True
    except BlockingIOError:
        return False


@contextmanager
def _locked(file: Path, how: int) -> Iterator[None]:
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)
