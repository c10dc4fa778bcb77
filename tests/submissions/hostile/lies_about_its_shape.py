"""Returns a tensor subclass that says it has the right shape and has one row only.

problem: softmax.py
device: any
rules: open
expect: correctness/values on cpu, correctness/not_written on cuda
"""

import torch
import torch.nn as nn


class Liar(torch.Tensor):
    @property
    def shape(self):
        return torch.Size((self.rows, self.size(1)))

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        out = super().__torch_function__(function, types, args, kwargs or {})
        if isinstance(out, Liar):
            out.rows = next((each.rows for each in args if isinstance(each, Liar)), 0)
        return out


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.softmax(x[:1], dim=1).as_subclass(Liar)
        out.rows = x.shape[0]
        return out
