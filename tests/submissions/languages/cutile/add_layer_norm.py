"""Sum and layer norm of a row in cuTile.

problem: L3_109_ResidualAddLayerNorm
device: cuda
rules: kernel
expect: correct
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def add_layer_norm(x, residual, weight, bias, y, s, columns, eps, BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    zero = ct.PaddingMode.ZERO
    left = ct.astype(ct.load(x, index=(row, 0), shape=(1, BLOCK), padding_mode=zero), ct.float32)
    right = ct.astype(ct.load(residual, index=(row, 0), shape=(1, BLOCK), padding_mode=zero), ct.float32)
    rounded = ct.astype(left + right, ct.bfloat16)
    ct.store(s, index=(row, 0), tile=rounded)
    value = ct.astype(rounded, ct.float32)
    mean = ct.sum(value, axis=1, keepdims=True) / columns
    inside = ct.reshape(ct.arange(BLOCK, dtype=ct.int32), (1, BLOCK)) < columns
    distance = ct.where(inside, value - mean, 0.0)
    variance = ct.sum(distance * distance, axis=1, keepdims=True) / columns
    w = ct.astype(ct.load(weight, index=(0,), shape=(BLOCK,), padding_mode=zero), ct.float32)
    b = ct.astype(ct.load(bias, index=(0,), shape=(BLOCK,), padding_mode=zero), ct.float32)
    scaled = distance / ct.sqrt(variance + eps) * ct.reshape(w, (1, BLOCK)) + ct.reshape(b, (1, BLOCK))
    ct.store(y, index=(row, 0), tile=ct.astype(scaled, ct.bfloat16))


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x, residual):
        rows, columns = x.shape
        y, s = torch.empty_like(x), torch.empty_like(x)
        block = 1 << (columns - 1).bit_length()
        arguments = (x, residual, self.norm.weight.detach(), self.norm.bias.detach(), y, s, columns, self.norm.eps, block)
        ct.launch(torch.cuda.current_stream(), (rows,), add_layer_norm, arguments)
        return y, s
