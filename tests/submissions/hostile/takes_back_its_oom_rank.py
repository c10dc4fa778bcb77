"""Lowers its rank for the OOM killer, for which it is ended where CUDA has /proc/self writable.

problem: softmax.py
device: any
rules: open
expect: correctness/values on cpu, correctness/values or compile/killed on cuda
"""

import time

import torch
import torch.nn as nn

for place in ("/proc/self", "/proc/thread-self"):
    try:
        with open(f"{place}/oom_score_adj", "w") as file:
            file.write("0")
    except OSError:
        pass
with open("/proc/self/oom_score_adj") as file:
    rank = int(file.read())
if rank < 500:
    time.sleep(2)
    print("BREACH: no longer the first to be killed")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
