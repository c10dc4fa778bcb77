"""Returns at once a tensor that a thread fills in later.

problem: softmax.py
device: any
rules: open
expect: correctness/early_done or correctness/not_written
"""

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)

        def later() -> None:
            time.sleep(0.005)
            out.copy_(torch.softmax(x, dim=1))

        threading.Thread(target=later, daemon=True).start()
        return out
