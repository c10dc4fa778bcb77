"""Makes its own times vary tenfold by sleeping now and then, in the hope that the shortest count.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import random
import time

import torch
import torch.nn as nn

chance = random.SystemRandom()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if chance.random() < 0.5:
            time.sleep(0.005)
        return A @ B
