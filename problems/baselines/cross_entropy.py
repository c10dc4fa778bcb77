"""Liger's cross entropy: one pass over each row with a running maximum, in Triton."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def row_loss(scores, targets, losses, classes, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most, total = -float("inf"), 0.0
    for first in range(0, classes, COLUMNS):
        c = first + tl.arange(0, COLUMNS)
        values = tl.load(scores + row * classes + c, mask=c < classes, other=-float("inf"))
        higher = tl.maximum(most, tl.max(values, axis=0))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(values - higher), axis=0)
        most = higher
    right = tl.load(scores + row * classes + tl.load(targets + row))
    tl.store(losses + row, most - right + tl.log(total))


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows, classes = predictions.shape
        losses = predictions.new_empty(rows)
        columns = min(8192, triton.next_power_of_2(classes))
        row_loss[(rows,)](predictions, targets, losses, classes, COLUMNS=columns, num_warps=8)
        return losses.mean()
