"""Two words of device memory through which a candidate's queue and the judge's take turns.

The candidate's stream waits for the first, which the judge writes, before each call; the judge's
stream waits for the second, which the candidate writes after it. Numbers only grow, so that no
earlier one will do.
"""

import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.region import DONE
from kevin_env.judge.api import JudgeError
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.memory import SharedRegion
from kevin_env.judge.workers.worker import Worker

_LAST = 0x7FFF_FFFF


class LaunchFlags:
    """The pair of one player; nobody else has it mapped.

    Args:
        worker: It is lent them.
        device: A GPU.
        timeout: Seconds that the worker may take to map them.

    Raises:
        JudgeError: where the driver cannot wait for words.
    """

    def __init__(self, worker: Worker, device: torch.device, timeout: float) -> None:
        self._next = 1
        self._device = device
        self._region = SharedRegion(2 * DONE, device)
        self._region.bytes.zero_()
        try:
            self.wait(0)
            finish(device)
            worker.share("words", self._region, timeout)
        except cuda.CudaError as error:
            self.close()
            raise JudgeError(
                f"this driver has no stream memory operations, so that nothing can be timed: {error}"
            ) from error
        except BaseException:
            self.close()
            raise

    def numbers(self, count: int) -> range:
        """Those of the next calls."""
        first, self._next = self._next, self._next + count
        return range(first, self._next)

    def open(self, number: int) -> None:
        """Lets the candidate's queue begin a call, once the judge's has done what it was given
        before.
        """
        cuda.write_word(self._region.start, number)

    def wait(self, number: int) -> None:
        """Has the judge's queue wait until a call is through."""
        cuda.wait_for(self._region.start + DONE, number)

    def release(self) -> None:
        """Ends all waiting, of the judge's queue and of calls that are queued, whatever the
        candidate does.
        """
        with torch.cuda.stream(torch.cuda.Stream(self._device)):
            cuda.write_word(self._region.start + DONE, _LAST)
            cuda.write_word(self._region.start, self._next - 1)

    def close(self) -> None:
        """Gives the memory back."""
        self._region.close()
