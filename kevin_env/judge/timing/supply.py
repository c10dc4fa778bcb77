"""Timed input sets of one contest, drawn while the device is still shared.

They lie in memory of the judge's own, and nothing of them is told before they are written to the
inbox. Each is used once, and follows from the secret and its number, whenever it is drawn.
"""

from collections import deque
from random import SystemRandom

from kevin_env.judge.device import finish, share_of_free
from kevin_env.judge.handshake.gate import Drawn
from kevin_env.judge.trial import Trial

TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""
SHARE = {"cuda": 0.1, "cpu": 0.05}
"""Of the memory that is free, by device: what may be drawn ahead, and what may wait for its
comparison. Two contests, and others' screening, share a GPU.
"""
STOCK = 3
"""Sets of the partners, which run trusted code: theirs need not be fresh. They come one after the
other, so that none is in a cache when it comes again.
"""


class Supply:
    """Input sets for the submission and for its partners.

    Args:
        trial: Draws them.
        budget: Bytes that may be drawn ahead; by default a share of the memory that is free now.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        device = trial.bench.device
        self._budget = share_of_free(SHARE, device) if budget is None else budget
        self._ready: deque[Drawn] = deque()
        self._others: deque[Drawn] = deque()
        self._stock = [trial.draw(TIMED)]
        self._handed = 0
        if self.fitting > STOCK:
            self._stock += [trial.draw(TIMED) for _ in range(1, STOCK)]

    @property
    def fitting(self) -> int:
        """How many sets the budget holds, with the outputs of their calls; at least 1."""
        each = self._stock[0].image.end + sum(tensor.nbytes for tensor in self._trial.outputs)
        return max(1, self._budget // max(1, each))

    def fill(self, count: int) -> None:
        """Draws so many ahead, or as many as there is room for, and one of another distribution."""
        if not self._others:
            self._others.append(self._other())
        while len(self._ready) < min(count, self.fitting):
            self._ready.append(self._trial.draw(TIMED))
        finish(self._trial.bench.device)

    def take(self, count: int) -> list[Drawn]:
        """So many sets that nobody has seen; those that are missing are drawn now."""
        ahead = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        return ahead + [self._trial.draw(TIMED) for _ in range(count - len(ahead))]

    def other(self) -> Drawn:
        """One of another distribution, where the problem has any, which stands among timed ones and
        is not timed.

        So whoever is right for timed inputs alone has to look at them.
        """
        return self._others.popleft() if self._others else self._other()

    def _other(self) -> Drawn:
        others = [each for each in self._trial.distributions if each != TIMED] or [TIMED]
        return self._trial.draw(SystemRandom().choice(others))

    def stock(self, count: int) -> list[Drawn]:
        """So many sets of the partners' that come next."""
        chosen = [
            self._stock[(self._handed + number) % len(self._stock)] for number in range(count)
        ]
        self._handed += count
        return chosen
