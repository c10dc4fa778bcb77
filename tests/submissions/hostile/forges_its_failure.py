"""Says that it failed, with numbers and texts that no process finds, to make the judge's own report of it fail.

problem: softmax.py
device: any
rules: open
expect: runtime/out_of_memory
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frame = f'[{10**4290}, "f", "{"s" * 3_000_000}"]'
        output = "a.cpp:1: error: x\\n" * 9000
        body = f'{{"failure": {{"kind": "out_of_memory", "type": "E", "message": "{"{{ x }}" * 900}",'
        body += f'"frames": [{frame}], "output": "{output}"}}}}'
        runtime.channel.send_frame(len(body).to_bytes(4, "big") + body.encode())
        while True:
            pass
