"""Has an error in its C++.

problem: softmax.py
device: any
rules: open
expect: compile/compiler
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
extern "C" int answer() {
    return undeclared_name + 1;
}
"""
load_inline("broken", SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
