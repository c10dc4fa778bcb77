"""Leaves what it has built running, as a compile server would, while others are timed.

problem: matmul.py
device: cpu
rules: open
expect: no gain
"""

import os
import subprocess

import torch
import torch.nn as nn

with open("busy.cpp", "w") as file:
    file.write("int main() { for (volatile long i = 0;; ++i) {} }\n")
subprocess.run("g++ -O3 busy.cpp -o busy".split(), check=True)
for _ in range(os.cpu_count() or 1):
    subprocess.Popen(["./busy"], start_new_session=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
