"""Decodes the function of torch that does the work from a string, under the rules that ask for a kernel.

problem: softmax.py
device: any
rules: kernel
expect: rules/torch_compute
"""

import base64

import torch
import torch.nn as nn

exec(base64.b64decode("d29yayA9IGxhbWJkYSB4OiB0b3JjaC5zb2Z0bWF4KHgsIGRpbT0xKQ=="))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return work(x)  # noqa: F821
