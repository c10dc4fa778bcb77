"""The device lease: who may touch the device, across threads and processes of this machine.

Shared by everything that runs something on the device, exclusive for the fraction of a second in
which times are taken. Whoever shares it for longer than a call asks in between whether it is
wanted. Within a long call nobody can, as kernels on a GPU go on: others may share the device until
it has ended. Contexts come and go beside all that. It is a file lock, so a process that dies gives
it back.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

STEP = 5e-4
"""Seconds between two looks whether the device is held by nobody any more."""


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

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Holds the device together with others."""
        with _locked(
            self._gate, fcntl.LOCK_SH
        ):  # whoever waits for the exclusive lease keeps newcomers out
            lock = _locked(self._file, fcntl.LOCK_SH)
            lock.__enter__()
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def wanted(self) -> bool:
        """Whether somebody holds it alone or waits to."""
        return not _free(self._gate, fcntl.LOCK_SH)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Says to others that a submission is under way here, whether or not it is on the device."""
        with _locked(self._users, fcntl.LOCK_SH):
            yield

    def idle(self) -> bool:
        """Whether no submission is under way on this device at this moment; do not ask inside
        `in_use`.
        """
        return _free(self._users, fcntl.LOCK_EX)

    @contextmanager
    def long_call(self) -> Iterator[None]:
        """Says that whoever shares the device will not give way for a while. Hold it shared."""
        with _locked(self._long, fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Holds the device alone. While it waits it keeps newcomers out, except during long calls."""
        with ExitStack() as held:
            while not self._taken_alone(held):
                with _locked(self._long, fcntl.LOCK_EX):
                    pass
            yield

    def _taken_alone(self, held: ExitStack) -> bool:
        """Waits until it holds the device alone; False where a long call is under way."""
        with ExitStack() as trying:
            trying.enter_context(_locked(self._gate, fcntl.LOCK_EX))
            while _free(self._long, fcntl.LOCK_EX):
                with suppress(BlockingIOError):
                    trying.enter_context(_locked(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB))
                    held.enter_context(trying.pop_all())
                    return True
                time.sleep(STEP)
        return False


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
