"""Input sets for calls under the clock, drawn while the device is still shared.

They lie in memory of the judge's own, and nothing of them is told before they are written to the inbox. Each is used
once, and follows from the secret and its number, whenever it is drawn.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import torch

from kevin_env.judge.device import finish, share_of_free
from kevin_env.judge.gate import Drawn, Gate
from kevin_env.judge.trial import Trial

TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""
SHARE = {"cuda": 0.1, "cpu": 0.05}
"""Of the memory that is free, by device: what may be drawn ahead. Two contests, and others' screening, share a GPU."""
AT_ONCE = 8
"""Sets that are drawn before others are let go first who want the device alone."""


class Supply:
    """Timed input sets of one contest.

    Args:
        trial: Draws them.
        budget: Bytes that may be drawn ahead; by default a share of the memory that is free now.

    Attributes:
        held: Bytes of the timed ones that were drawn ahead and are there.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self.held = 0
        self._trial = trial
        self._budget = share_of_free(SHARE, self._device) if budget is None else budget
        self._ready: deque[Drawn] = deque()
        self._stock: list[Drawn] = []
        self._others: list[Drawn] = []

    @property
    def each(self) -> int:
        """Bytes of one."""
        return self.stock(1)[0].image.end

    def stock(self, count: int) -> list[Drawn]:
        """Sets for the partners, one after the other in the inbox; the same ones until more are asked for.

        They lie in a row, as those that nobody has seen mostly do: on an H200 two blocks of 6 GB together were written
        80 us earlier than one, and the windows of both sides are compared.
        """
        if not self._stock:
            self._stock.append(self._trial.draw(TIMED))
        if count > len(self._stock):
            self._stock = self._drawn(count, self._memory(count))
        return self._stock[:count]

    def gate_of_partners(self) -> Gate | None:
        """On a CPU a gate of their own, closed with the trial; None on a GPU, which may have no room for it.

        A submission that is woken while it should stand still could write to what it shares with a reference, which
        then fails, and that is the judge's failure.
        """
        if self._device.type == "cuda":
            return None
        outbox = self._trial.gate.answer_bytes
        return self._trial.open_gate(self.stock(1), outbox, outbox)

    def fill(self, count: int, stock: int, others: int = 0) -> Iterator[None]:
        """Draws so many ahead, or as many as there is room for; after every few something else may be done.

        Args:
            count: Of those that nobody has seen.
            stock: Of the partners'.
            others: Of those that stand among timed ones.
        """
        self.stock(stock)
        finish(self._device)  # whoever has the device next is not to run beside it
        yield
        count = min(count, (self._budget - self.held) // max(1, self.each))
        memory = self._memory(count)
        for place in range(0, count, AT_ONCE):
            few = self._drawn(min(AT_ONCE, count - place), memory[place * self.each :])
            self._ready += few
            self.held += sum(drawn.image.bytes.numel() for drawn in few)
            finish(self._device)
            yield
        while len(self._others) < min(others, (self._budget - self.held) // max(1, self.each)):
            self._others.append(self._other())
            finish(self._device)
            yield

    def take_other(self) -> Drawn:
        """One on any distribution, that stands among timed ones and is not timed."""
        return self._others.pop() if self._others else self._other()

    def take(self, count: int) -> list[Drawn]:
        """So many sets that nobody has seen, one after the other in the inbox; those that are missing are drawn now."""
        sets: list[Drawn] = []
        while self._ready and len(sets) < count:
            drawn = self._ready.popleft()
            self.held -= drawn.image.bytes.numel()
            sets.append(replace(drawn, image=drawn.image.at(sets[-1].image.end if sets else 0)))
        missing = count - len(sets)
        return sets + self._drawn(missing, self._memory(missing), sets[-1].image.end if sets else 0)

    def _other(self) -> Drawn:
        return self._trial.draw(random.SystemRandom().choice(self._trial.distributions))

    @property
    def _device(self) -> torch.device:
        return self._trial.bench.device

    def _memory(self, count: int) -> torch.Tensor:
        return torch.empty(max(0, count) * self.each, dtype=torch.uint8, device=self._device)

    def _drawn(self, count: int, memory: torch.Tensor, start: int = 0) -> list[Drawn]:
        """Fresh sets in a row, in the inbox from `start` on and in memory; one that is larger than others elsewhere."""
        sets: list[Drawn] = []
        for place in range(count):
            part = memory[place * self.each : (place + 1) * self.each]
            sets.append(self._trial.draw(TIMED, sets[-1].image.end if sets else start, part))
        return sets
