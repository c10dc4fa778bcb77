"""The memory of a candidate's process, which the judge reads itself: on a CPU its outputs are where
they were computed.

So nobody has to copy them while the clock runs, and nothing of the candidate's decides what is
seen.
"""

import os
from contextlib import suppress
from pathlib import Path

import torch

from kevin_env.judge.workers.errors import Broken


class ProcessMemory:
    """The memory of one process, as it was when this was made: a program that it becomes later has
    other memory.

    Args:
        pid: Of the process, a descendant of this one.

    Raises:
        OSError: where that may not be read.
    """

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, address: int, size: int) -> torch.Tensor:
        """A copy of so many bytes from an address on.

        Raises:
            Broken: when the process has no such memory.
        """
        data = torch.empty(size, dtype=torch.uint8)
        room, done = memoryview(data.numpy().data), 0
        with suppress(OSError, OverflowError):
            while done < size and (read := os.preadv(self._fd, [room[done:]], address + done)):
                done += read
        if done < size:
            raise Broken("an output does not lie in the memory of its process")
        return data

    def close(self) -> None:
        """Nothing can be read any more. Twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def memory_below(keeper: int) -> ProcessMemory | None:
    """That of a keeper's candidate, of which nothing of a submission has run yet; None where it may
    not be read.
    """
    with suppress(OSError, ValueError):
        (candidate,) = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return ProcessMemory(int(candidate))
    return None
