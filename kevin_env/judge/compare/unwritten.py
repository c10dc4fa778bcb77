"""Finds memory in an output that a submission never wrote.

A submission whose answer is wrong is called again after its free memory was filled with a pattern.
"""

from collections.abc import Sequence

import torch

from kevin_env.candidate.region import POISON
from kevin_env.judge.compare.pattern import pattern_of
from kevin_env.judge.compare.values import Mismatch, counts_of, is_rounded
from kevin_env.outcome import Difference


def find_unwritten(
    before: torch.Tensor, now: torch.Tensor, differences: Sequence[Difference] = ()
) -> Mismatch | None:
    """What is wrong with an output that holds the filling; None if it holds none.

    Args:
        before: The output of a call on the same inputs, without filling memory.
        now: The output of the call afterwards, which is wrong.
        differences: Its first wrong elements.
    """
    if now.shape != before.shape or now.dtype != before.dtype:
        return None
    count = sum(counts_of(_left_as_filled, now, before))
    if count == 0:
        return None
    shown: list[Difference] = []
    for each in differences:
        at = each.index[: now.dim()]  # a complex element's index ends with its part
        left = _left_as_filled(now[at], before[at])
        shown.append(each.model_copy(update={"got": "uninitialized"}) if left else each)
    some = f"{count} of {now.numel()} elements ({100 * count / now.numel():.3g} %) hold"
    which = "the output holds" if count == now.numel() else some
    what = f"{which} uninitialized memory: never written, or computed from uninitialized memory"
    return Mismatch(
        "not_written", what, wrong=count, total=now.numel(), differences=tuple(shown),
        pattern=pattern_of(_left_as_filled, now, before),
    )  # fmt: skip


def _left_as_filled(now: torch.Tensor, then: torch.Tensor) -> torch.Tensor:
    """The elements that hold the filling; integers only if they held something else before."""
    now_bytes, then_bytes = (
        each.contiguous().unsqueeze(-1).view(torch.uint8) for each in (now, then)
    )
    filled = (now_bytes == POISON).all(-1)
    return filled if is_rounded(now) else filled & (now_bytes != then_bytes).any(-1)
