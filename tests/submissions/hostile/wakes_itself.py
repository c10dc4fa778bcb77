"""Has timers send SIGCONT to its helpers, which then run while all should stand still, and burn the cores.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import ctypes
import os
import signal
import struct
import time

import torch
import torch.nn as nn

libc = ctypes.CDLL(None)
main = os.getpid()


def stopped() -> bool:
    with open(f"/proc/{main}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def burn() -> None:
    signal.signal(signal.SIGCONT, lambda *_: None)  # a timer whose signal is ignored is not armed again
    event, timers = ctypes.create_string_buffer(64), [ctypes.c_void_p() for _ in range(2)]
    struct.pack_into("qii", event, 0, 0, signal.SIGCONT, 0)
    for timer in timers:
        libc.timer_create(1, event, ctypes.byref(timer))
    while True:
        for timer, after in zip(timers, (1_000_000, 8_000_000)):
            libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 0, 0, after), None)
        if not stopped():
            time.sleep(0.0005)


for _ in range(2 * (os.cpu_count() or 1)):
    if os.fork() == 0:
        burn()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
