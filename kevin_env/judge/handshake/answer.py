"""What comes of one call at the handshake."""

import time
from dataclasses import dataclass

import torch

from kevin_env.judge.handshake.claims import CallClaim, Output
from kevin_env.judge.workers.errors import Broken

LATE_SECONDS = 0.02


@dataclass(frozen=True)
class Answer:
    """One call.

    Attributes:
        claim: What it is said to have given.
        outputs: Its outputs in memory of the judge's own; those of a baseline where they are.
        placed: The outputs where the candidate has them; its next call may overwrite them.
        seconds: From when its inputs could be read until the judge had looked at an output.
        unchanged: Whether the inputs were left as they were.
        early: Whether an output changed after it had been looked at.
        writing: On a GPU, the seconds before that in which the input was written and the L2
            flushed.
    """

    claim: CallClaim
    outputs: list[Output]
    placed: list[Output]
    seconds: float
    unchanged: bool = True
    early: bool = False
    writing: float = 0.0

    @property
    def bytes(self) -> int:
        """Of the outputs that were taken."""
        return sum(output.size for output in self.outputs if output.flat is not None)

    def changed_since(self) -> bool:
        """Whether an output is not what it was when it was taken; waits a moment for kernels that
        still run.
        """
        time.sleep(LATE_SECONDS)
        try:
            return any(
                then.has_bytes and not torch.equal(now.taken().bytes, then.bytes)
                for now, then in zip(self.placed, self.outputs, strict=True)
            )
        except Broken:  # it is not even there any more
            return True
