"""What comes of a pass through the gate."""

import itertools
import time
from dataclasses import dataclass, field

import torch

from kevin_env.judge.claims import CallClaim, Output
from kevin_env.judge.trouble import Broken

LATE_SECONDS = 0.02


@dataclass(frozen=True)
class Call:
    """The outputs of one call, in memory of the judge's own; those of a partner where they are."""

    claim: CallClaim
    outputs: list[Output] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What came of one pass through the gate.

    Attributes:
        seconds: The length of the window, from the first visible byte of an input.
        parts: From the word to each mark and to the claim at last. Inputs were visible before, and a claim is a claim:
            these only ever refine.
        calls: Outputs of each call in it.
        unchanged: Whether the inputs were left as they were.
        early: Whether an output changed after it had been claimed done.
        steady: Whether nothing had to be mapped inside the window; otherwise the time says nothing.
        placed: The outputs where the candidate has them; its next call may overwrite them.
        queued: Whether all was said to be launched before the inputs were there, and nothing to be done.
    """

    seconds: float
    parts: tuple[float, ...]
    calls: list[Call]
    unchanged: bool
    early: bool
    steady: bool
    placed: list[list[Output]]
    queued: bool = False

    def changed_since(self) -> bool:
        """Whether an output is not what it was when it was taken; waits a moment for kernels that still run."""
        time.sleep(LATE_SECONDS)
        pairs = zip(itertools.chain(*self.placed), itertools.chain(*(call.outputs for call in self.calls)), strict=True)
        try:
            return any(then.has_bytes and not torch.equal(now.taken().bytes, then.bytes) for now, then in pairs)
        except Broken:  # it is not even there any more
            return True


def overlapping(calls: list[Call]) -> bool:
    """Whether two calls of a burst wrote to the same memory, so that only the last output is left to be seen."""
    spans: list[tuple[str, int, int]] = []
    for call in calls:
        for output in call.outputs:
            if output.claim.place in ("outbox", None):
                return True
            span = 0 if output.flat is None else output.claim.span
            spans.append((output.claim.place, output.claim.offset, output.claim.offset + span))
    spans.sort()
    return any(a[0] == b[0] and b[1] < a[2] for a, b in itertools.pairwise(spans))
