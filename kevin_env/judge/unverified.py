"""Timed answers whose outputs are compared later, when the device is no longer held alone.

Inputs and outputs lie in memory of the judge's own, so that nothing a submission does meanwhile changes what is found.
They are compared in the order in which they were given. Nothing is told of a submission before all of them are.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress

import torch

from kevin_env.judge.answer import Answer
from kevin_env.judge.device import share_of_free
from kevin_env.judge.gate import Drawn
from kevin_env.judge.lease import Lease
from kevin_env.judge.stopwatch import Stopwatch
from kevin_env.judge.trial import Trial
from kevin_env.outcome import Incorrect

SHARE = {"cuda": 0.2, "cpu": 0.05}
"""Of the memory that is free, by device: what may wait. What does not fit is compared while the device is held alone:
with 0.12, for 0.02 to 0.1 s of the 0.25 to 0.4 s of kernels on 128 to 512 MB."""

STAY = 0.02
"""Seconds for which passes are compared before others are let go first: as long as some calls that are screened. With
one pass at a time, a submission would be told of only after dozens of others had been timed."""


class Wrong(Exception):
    """A timed call gave a wrong answer."""

    def __init__(self, outcome: Incorrect) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Unverified:
    """Passes of one submission that are still to be compared.

    Args:
        trial: Of the submission; its case stays the same until all is compared.
        budget: Bytes that may wait; by default a share of the memory that is free now.

    Attributes:
        held: Bytes of the inputs and outputs that wait.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self.held = 0
        self._trial = trial
        self._budget = share_of_free(SHARE, trial.bench.device) if budget is None else budget
        self._room: torch.Tensor | None = None
        self._waiting: deque[tuple[Answer, list[Drawn]]] = deque()

    def make_room(self, count: int, each: int) -> None:
        """Has torch keep so many times `each` bytes on a GPU for outputs; to ask the driver for them takes longer.

        The memory is held until `use_room`: what torch keeps, it gives back whenever another submission ends.
        """
        device = self._trial.bench.device
        if device.type == "cuda":
            with suppress(torch.OutOfMemoryError):
                self._room = torch.empty(min(count * each, self._budget // 2), dtype=torch.uint8, device=device)

    def use_room(self) -> None:
        """From now on outputs are taken into that memory. Hold the device alone."""
        self._room = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, answer: Answer, sets: list[Drawn]) -> None:
        """`keep` and `relieve`. Errors as there."""
        self.keep(answer, sets)
        self.relieve()

    def keep(self, answer: Answer, sets: list[Drawn]) -> None:
        """Has every output of a pass compared later."""
        self._waiting.append((answer, sets))
        self.held += _bytes_of(answer, sets)

    def relieve(self) -> None:
        """Where too much waits, compares what waits longest.

        Raises:
            Wrong: when one that is compared now is wrong.
        """
        if self.held > self._budget:
            self.compare(until=lambda: self.held <= self._budget)

    def compare(self, until: Callable[[], bool] = lambda: False) -> None:
        """Compares one pass after the other, until something holds after one of them or none is left.

        Raises:
            Wrong: at the first one that is wrong; the others are let go of.
        """
        while self._waiting:
            answer, sets = self._waiting.popleft()
            self.held -= _bytes_of(answer, sets)
            wrong = self._trial.check(answer, sets)
            if wrong is not None:
                self._waiting.clear()
                self.held = 0
                raise Wrong(wrong)
            if until():
                return

    def compare_beside_others(self, lease: Lease, watch: Stopwatch) -> None:
        """Compares all under the shared lease; now and then those are let go first who want the device alone.

        Raises:
            Wrong: as `compare`.
        """
        while self._waiting:
            with ExitStack() as held:
                with watch("queue"):
                    held.enter_context(lease.shared())
                with watch("verify"):
                    self._compare_for_a_while(lease)

    def _compare_for_a_while(self, lease: Lease) -> None:
        began = time.monotonic()
        self.compare(until=lambda: time.monotonic() - began >= STAY and lease.wanted())


def _bytes_of(answer: Answer, sets: list[Drawn]) -> int:
    outputs = (output for call in answer.calls for output in call.outputs if output.flat is not None)
    return sum(drawn.image.bytes.numel() for drawn in sets) + sum(output.size for output in outputs)
