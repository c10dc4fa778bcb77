"""Has the kernel send SIGCONT to helpers when their sockets are written to, which they do to each other all the time.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import fcntl
import os
import signal
import socket
import time

import torch
import torch.nn as nn

ours, theirs = socket.socketpair()


def play(end: socket.socket) -> None:
    signal.signal(signal.SIGCONT, lambda *_: None)
    end.setblocking(False)
    fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(end, 10, signal.SIGCONT)  # F_SETSIG
    fcntl.fcntl(end, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    while True:
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
