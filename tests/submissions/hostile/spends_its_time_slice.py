"""Spins on another stream from the end of a call on until about when the next may begin, to choose its time slices.

problem: relu.py
device: cuda
rules: open
expect: no gain
"""

import random

import torch
import torch.nn as nn

from kevin_env.candidate import cuda

side, through = torch.cuda.Stream(), torch.cuda.Event()
honest, chance = cuda.write_word, random.SystemRandom()


def write_word(pointer: int, value: int) -> None:
    honest(pointer, value)
    through.record()
    side.wait_event(through)
    with torch.cuda.stream(side):
        torch.cuda._sleep(chance.choice((500_000, 1_000_000, 2_000_000, 4_000_000)))


cuda.write_word = write_word


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
