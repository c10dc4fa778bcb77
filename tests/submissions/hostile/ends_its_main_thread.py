"""Ends the main thread of its process and serves from another, so that the process looks like one that has ended.

problem: row_norms.py
device: cpu
rules: open
expect: correctness/nondeterministic or correctness/values
"""

import ctypes
import gc
import threading

import torch
import torch.nn as nn

EXIT = 60
runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x))
        threading.Thread(target=lambda: out.copy_(torch.linalg.vector_norm(x, dim=1))).start()
        return out.clone()


def serve() -> None:
    runtime.entry = ModelNew
    runtime.channel.send({})
    runtime.serve()


threading.Thread(target=serve).start()
ctypes.CDLL(None).syscall(EXIT, 0)
