"""A word of device memory for which a player's queue of kernels waits until the judge writes it."""

import torch

from kevin_env.judge.device import finish
from kevin_env.judge.memory import SharedRegion
from kevin_env.judge.worker import Worker


class Word:
    """One player's; nobody else has it mapped.

    Args:
        worker: Who is lent it.
        device: A GPU.
        timeout: Seconds that the worker may take to map it.
    """

    def __init__(self, worker: Worker, device: torch.device, timeout: float) -> None:
        self.value = 0
        """What is waited for: it grows with each call, so that no earlier one's will do."""
        self._region = SharedRegion(4, device)
        self._word = self._region.bytes[:4].view(torch.int32)
        self._word.zero_()
        finish(device)
        try:
            worker.share("word", self._region, timeout)
        except BaseException:
            self.close()
            raise

    def write(self) -> None:
        """Lets the queue go; only queued itself."""
        self._word.fill_(self.value)

    def close(self) -> None:
        """Gives the memory back."""
        self._word = torch.empty(0)
        self._region.close()
