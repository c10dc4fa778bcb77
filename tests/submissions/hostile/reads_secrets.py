"""Looks for secrets in environments, home folders and on the network.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os
import socket
from pathlib import Path

import torch
import torch.nn as nn


def look() -> None:
    for name in ("HOME", "PYTEST_CURRENT_TEST", "SSH_AUTH_SOCK", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        if name in os.environ and not os.environ[name].startswith(os.getcwd()):
            print("BREACH: has", name)
    for environ in Path("/proc").glob("*/environ"):
        try:
            if b"PYTEST_CURRENT_TEST" in environ.read_bytes():
                print("BREACH: reads", environ)
        except OSError:
            pass
    for place in ("/root", "/home", "/etc/shadow", "/etc/ssh", "/var/log", "/var/spool", "/run/secrets"):
        try:
            os.listdir(place) if os.path.isdir(place) else open(place).close()
            print("BREACH: opens", place)
        except OSError:
            pass
    for address in (("127.0.0.1", 22), ("127.0.0.1", 80), ("1.1.1.1", 443)):
        try:
            socket.create_connection(address, timeout=2).close()
            print("BREACH: connects to", address)
        except ConnectionRefusedError:
            print("BREACH: shares the loopback device of", address)
        except OSError:
            pass


look()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
