"""Returns at once memory that a process of its own fills in later.

problem: row_norms.py
device: cpu
rules: open
expect: correctness/early_done or correctness/values
"""

import multiprocessing
import time

import torch
import torch.nn as nn

context = multiprocessing.get_context("fork")


def later(x: torch.Tensor, out: torch.Tensor) -> None:
    time.sleep(0.01)
    out.copy_(x.square().sum(dim=1).sqrt())


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0]).share_memory_()
        context.Process(target=later, args=(x, out), daemon=True).start()
        return out
