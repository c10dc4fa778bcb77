"""Finds the memory that the judge reads and has a thread write the output there after it was claimed done.

problem: softmax.py
device: cpu
rules: open
expect: correctness/early_done
"""

import gc
import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
        out = runtime.regions["outbox"].bytes[: x.nbytes].view(x.dtype).view_as(x)

        out.zero_()

        def later() -> None:
            time.sleep(0.01)
            out.copy_(torch.softmax(x, dim=1))

        threading.Thread(target=later, daemon=True).start()
        return out
