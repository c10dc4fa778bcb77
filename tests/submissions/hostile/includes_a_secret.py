"""Has the compiler quote files that it may not read, in the errors that it gives.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import subprocess

import torch
import torch.nn as nn

for path in ("/etc/shadow", "/root/.bashrc", "/root/.ssh/id_rsa", "/proc/1/environ"):
    with open("quote.cpp", "w") as file:
        file.write(f'#include "{path}"\nasm(".incbin \\"{path}\\"");\n')
    done = subprocess.run("g++ -c quote.cpp -o quote.o".split(), capture_output=True, text=True, check=False)
    if done.returncode == 0 or "No such file" not in done.stderr and "ermission denied" not in done.stderr:
        print("BREACH: the compiler reads", path, done.stderr[:100])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
