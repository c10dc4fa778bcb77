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
            right = torch.softmax(x, dim=1)
            for share in range(1, 101):  # for a while, however busy the machine is
                time.sleep(0.002)
                out.copy_(right * share / 100)

        threading.Thread(target=later, daemon=True).start()
        return out
