"""Input sets for calls under the clock."""

import torch

from kevin_env.judge.gate import Drawn
from kevin_env.judge.trial import Trial

TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""


def draw_row(trial: Trial, count: int, each: int, start: int = 0) -> list[Drawn]:
    """Fresh timed input sets, one after the other in the inbox and in the judge's own memory.

    Args:
        trial: Gives them.
        count: How many.
        each: Bytes of one; what is larger lies elsewhere in memory.
        start: Where the first one lies in the inbox.
    """
    row = torch.empty(count * each, dtype=torch.uint8, device=trial.bench.device)
    sets: list[Drawn] = []
    for place in range(count):
        sets.append(trial.draw(TIMED, sets[-1].image.end if sets else start, row[place * each : (place + 1) * each]))
    return sets
