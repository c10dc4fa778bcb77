"""Becomes another program, small and quick, which goes on with the same channel and says that all is done.

problem: softmax.py
device: cpu
rules: open
expect: correctness/not_written
"""

import gc
import os
import sys

import torch

PROGRAM = r"""
import json, os, sys
fd, data = int(sys.argv[1]), b""
def send(message):
    body = json.dumps(message).encode()
    os.write(fd, len(body).to_bytes(4, "big") + body)
send({})
while True:
    data += os.read(fd, 1 << 16)
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
        order, data = json.loads(data[4:end]), data[end:]
        if order["order"] == "stage":
            place = {"device": "cpu", **order["specs"][0], "in": "outbox", "offset": 0}
        claim = {"skeleton": {"t": 0}, "tensors": [place]} if order["order"] == "go" else None
        send({"claims": [claim] * len(order["seeds"])} if claim else {})
"""
runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
descriptor = runtime.channel.sock.fileno()
os.set_inheritable(descriptor, True)
os.execv(sys.executable, [sys.executable, "-S", "-c", PROGRAM, str(descriptor)])


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
