"""Smith-Waterman scores: the best local alignment of each pair of sequences.

    H[i, j] = max(0, H[i-1, j-1] + s, H[i-1, j] - gap, H[i, j-1] - gap),    H[0, j] = H[i, 0] = 0
    s = match if first[b, i-1] = second[b, j-1] else -mismatch,    scores[b] = the largest H[i, j]

first is (batch_size, first_length), second is (batch_size, second_length), both uint8 with every symbol in 0..3;
scores is (batch_size,), int32; all are contiguous. match = 2, mismatch = 1 and gap = 2 in every case, and they are the
constructor's arguments in this order. second is first, rotated and with some symbols redrawn, more in some
pairs than in others. All three sizes vary between cases, and lengths are at most 1000. There are no parameters.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4096
first_length = 256
second_length = 300
match = 2
mismatch = 1
gap = 2

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 60, "first_length": 100, "second_length": 120},
    "odd": {"batch_size": 33, "first_length": 61, "second_length": 45},
    "long": {"batch_size": 2, "first_length": 1000, "second_length": 1000},
}
TAGS: tuple[str, ...] = ("dynamic-programming",)


class Model(nn.Module):
    def __init__(self, match: int, mismatch: int, gap: int):
        super().__init__()
        self.match, self.mismatch, self.gap = match, mismatch, gap

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        slope = self.gap * torch.arange(second.shape[1], dtype=torch.int32, device=second.device)
        above = torch.zeros_like(second, dtype=torch.int32)
        scores = above[:, 0]
        for symbol in first.unbind(1):
            same = symbol[:, None] == second
            diagonal = F.pad(above, (1, -1)) + (self.match + self.mismatch) * same.int() - self.mismatch
            reached = torch.maximum(diagonal, above - self.gap).clamp(min=0)
            above = (reached + slope).cummax(1).values - slope  # or from any cell to the left, a gap per step
            scores = torch.maximum(scores, above.amax(1))
        return scores


def get_inputs() -> list[torch.Tensor]:
    first, other = (
        torch.randint(0, 4, (batch_size, length), dtype=torch.uint8) for length in (first_length, second_length)
    )
    moved = torch.arange(second_length) + torch.randint(0, first_length, (batch_size, 1))
    fresh = torch.rand(batch_size, second_length) < torch.rand(batch_size, 1)
    return [first, torch.where(fresh, other, first.gather(1, moved % first_length))]


def get_init_inputs() -> list:
    return [match, mismatch, gap]
