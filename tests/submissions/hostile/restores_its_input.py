"""Works in place in its input and puts the old values back when it is let go on after its claim, before anybody looks.

problem: relu.py
device: cpu
rules: open
expect: correctness/values or correctness/inputs_changed
"""

import threading
import time

import torch
import torch.nn as nn

work = threading.Event()
held = []


def restore():
    while True:
        work.wait()
        work.clear()
        x, old = held
        time.sleep(0.0012)  # long enough to be stopped in it
        x.copy_(old)


threading.Thread(target=restore, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        held[:] = x, x.clone()
        x.clamp_(min=0)
        work.set()
        return x
