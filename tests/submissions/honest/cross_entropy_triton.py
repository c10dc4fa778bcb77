"""Cross entropy in Triton: a loss for every row into a buffer, then one program that means them; a scalar output.

problem: L1_95_CrossEntropyLoss
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_losses(x, target, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * columns
    most = float("-inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + column, mask=column < columns, other=float("-inf"))
        larger = tl.maximum(most, tl.max(value, axis=0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(value - larger), axis=0)
        most = larger
    tl.store(losses + row, tl.log(total) + most - tl.load(x + tl.load(target + row)))


@triton.jit
def mean(losses, out, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        total += tl.load(losses + row, mask=row < rows, other=0.0).to(tl.float64)
    tl.store(out, (tl.sum(total, axis=0) / rows).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows, columns = predictions.shape
        losses = torch.empty(rows, device=predictions.device)
        loss = torch.empty((), device=predictions.device)
        block = min(triton.next_power_of_2(columns), 4096)
        row_losses[(rows,)](predictions, targets, losses, columns, BLOCK=block)
        mean[(1,)](losses, loss, rows, BLOCK=1024)
        return loss
