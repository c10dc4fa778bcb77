"""Builds an extension that lacks one of its functions.

problem: softmax.py
device: any
rules: open
expect: compile/link
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <Python.h>
extern int missing_function();
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "lacking", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_lacking() { return missing_function() ? PyModule_Create(&module) : nullptr; }
"""
extension = load_inline("lacking", SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
