"""Frees the memory of its output and fills what comes in its place, right after it was claimed.

problem: matmul.py
device: cpu
rules: open
expect: correctness/early_done or correctness/values or correctness/nondeterministic or runtime/protocol
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


def send(*args, **keywords) -> None:
    type(runtime.channel).send_frame(runtime.channel, *args, **keywords)
    for out in runtime.held:
        out.untyped_storage().resize_(0)
        torch.full((out.numel() + 1,), 7.0)


runtime.channel.send_frame = send


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
