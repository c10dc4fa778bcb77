"""Has the kernel send SIGCONT to helpers when their sockets are written to, which they do to each other all the time.

problem: matmul.py
device: cpu
rules: open
expect: correct
"""

import fcntl
import os
import signal
import socket
import time

import torch
import torch.nn as nn

main = os.getpid()
ours, theirs = socket.socketpair()


def stopped() -> bool:
    with open(f"/proc/{main}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def play(end: socket.socket) -> None:
    signal.signal(signal.SIGCONT, lambda *_: None)
    end.setblocking(False)
    fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(end, 10, signal.SIGCONT)  # F_SETSIG
    fcntl.fcntl(end, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    seen = 0
    while True:
        seen = seen + 1 if stopped() else 0
        if seen == 300:
            print("BREACH: runs while it should stand still", flush=True)
        try:
            end.send(b"x")
            end.recv(4096)
        except BlockingIOError:
            time.sleep(0.0002)


for end in (ours, theirs):
    if os.fork() == 0:
        play(end)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
