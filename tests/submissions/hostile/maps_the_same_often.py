"""Maps the same memory so often that whoever adds it up, page by page, is busy for seconds.

problem: softmax.py
device: cpu
rules: open
expect: compile/killed or runtime/killed or no gain
"""

import mmap
import os
import time

import torch
import torch.nn as nn

SIZE, TIMES = 1 << 29, 40
if os.fork() == 0:
    with open("/dev/shm/much", "wb+") as file:
        file.truncate(SIZE)
        kept = [mmap.mmap(file.fileno(), SIZE, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) for _ in range(TIMES)]
    os.mkdir("ready")
    time.sleep(600)
while not os.path.exists("ready"):
    time.sleep(0.01)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
