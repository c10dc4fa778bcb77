"""Starts a long kernel right after each claim, which runs on while its process stands still and the reference is timed.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
side = torch.cuda.Stream()


def send(*args, **keywords) -> None:
    type(runtime.channel).send_frame(runtime.channel, *args, **keywords)
    with torch.cuda.stream(side):
        torch.cuda._sleep(60_000_000)


runtime.channel.send_frame = send


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
