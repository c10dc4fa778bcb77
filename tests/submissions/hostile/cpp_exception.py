"""Throws a C++ exception that nobody catches.

problem: softmax.py
device: cpu
rules: open
expect: runtime/signal
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

with open("thrower.cpp", "w") as file:
    file.write('#include <stdexcept>\nextern "C" void run() { throw std::runtime_error("not caught"); }\n')
subprocess.run("g++ -shared -fPIC thrower.cpp -o libthrower.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./libthrower.so")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lib.run()
        return torch.softmax(x, dim=1)
