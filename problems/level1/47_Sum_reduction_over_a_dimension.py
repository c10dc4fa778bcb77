"""Sum over the middle dimension of a three-dimensional tensor, which is kept with size 1.

    y[b, 0, j] = sum over i of x[b, i, j]

x is (batch_size, dim1, dim2), y is (batch_size, 1, dim2), both float32 and contiguous. The constructor takes dim, the
dimension to reduce over: it is 1 in every case. The three sizes vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed, so that the sums are spread around zero; the tensor is smaller.
"""

import torch
import torch.nn as nn

batch_size = 64
dim1 = 2048
dim2 = 2047
reduce_dim = 1

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 6, "dim1": 512, "dim2": 1023},
    "odd": {"batch_size": 5, "dim1": 331, "dim2": 509},
    "tall": {"batch_size": 1, "dim1": 4096, "dim2": 64},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 9, "dim1": 701, "dim2": 97}}
TAGS: tuple[str, ...] = ("reduction",)


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=self.dim, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim1, dim2)]


def get_init_inputs() -> list:
    return [reduce_dim]
