"""Is linked to a library that does not exist.

problem: softmax.py
device: any
rules: open
expect: compile/link
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = 'extern "C" int answer() { return 42; }'
flags = ["-lno_such_library"]
load_inline("unlinked", SOURCE, extra_ldflags=flags, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
