"""Prints a verdict as the last line of stdout and exits with success.

problem: softmax.py
device: any
rules: open
expect: runtime/exit
"""

import json
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        verdict = {"category": "correct", "kind": "timed", "speedup": 1000.0, "outcome": {"category": "correct"}}
        print(json.dumps(verdict), flush=True)
        os._exit(0)
