"""Raises an error that looks like one of Triton's compiler, to have a wrong answer taken for a build that failed.

problem: softmax.py
device: any
rules: open
expect: compile/jit
"""

import torch
import torch.nn as nn

Error = type("CompilationError", (Exception,), {"__module__": "triton.compiler.errors"})


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Error("at 1:0: the machine has no compiler; try again, infrastructure, lock")
