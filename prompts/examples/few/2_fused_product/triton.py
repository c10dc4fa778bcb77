import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def linear_relu_square(x, weight, bias, y, rows, outputs, inputs, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    output = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, inputs, K):
        input = start + tl.arange(0, K)
        inside = input < inputs
        a = tl.load(x + row[:, None] * inputs + input[None], mask=(row < rows)[:, None] & inside[None], other=0.0)
        b = tl.load(
            weight + output[None] * inputs + input[:, None], mask=(output < outputs)[None] & inside[:, None], other=0.0
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    total += tl.load(bias + output, mask=output < outputs, other=0.0)[None]
    total = tl.maximum(total, 0.0)
    place = y + row[:, None] * outputs + output[None]
    tl.store(place, total * total, mask=(row < rows)[:, None] & (output < outputs)[None])


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)  # holds the weights, under the names that they have in Model

    def forward(self, x):
        x = x.contiguous()
        weight, bias = self.linear.weight, self.linear.bias
        rows, inputs = x.shape
        outputs = weight.shape[0]
        y = torch.empty(rows, outputs, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(rows, 64), triton.cdiv(outputs, 64))
        linear_relu_square[grid](x, weight, bias, y, rows, outputs, inputs, M=64, N=64, K=32)
        return y
