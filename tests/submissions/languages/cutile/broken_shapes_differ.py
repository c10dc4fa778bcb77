"""Subtracts a tile that does not broadcast.

problem: softmax.py
device: cuda
rules: kernel
expect: compile/jit
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def softmax(x, y, BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    value = ct.load(x, index=(row, 0), shape=(1, BLOCK))
    power = ct.exp(value - ct.zeros((4, 8), dtype=ct.float32))
    ct.store(y, index=(row, 0), tile=power / ct.sum(power, axis=1, keepdims=True))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        block = 1 << (x.shape[1] - 1).bit_length()
        ct.launch(torch.cuda.current_stream(), (x.shape[0],), softmax, (x, y, block))
        return y
