"""Leaves out the division.

problem: softmax.py
device: cuda
rules: kernel
expect: correctness/values or correctness/not_finite
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def softmax(x, y, BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    value = ct.load(x, index=(row, 0), shape=(1, BLOCK))
    ct.store(y, index=(row, 0), tile=ct.exp(value))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        block = 1 << (x.shape[1] - 1).bit_length()
        ct.launch(torch.cuda.current_stream(), (x.shape[0],), softmax, (x, y, block))
        return y
