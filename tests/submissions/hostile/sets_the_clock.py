"""Tries to set the machine's clocks, to what they show already, and to leave a processor's speed as it is.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import ctypes
import glob
import time

import torch
import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)


def write_same(path: str) -> None:
    with open(path, "r+") as file:
        text = file.read()
        file.seek(0)
        file.write(text)


def slew() -> None:
    block = ctypes.create_string_buffer(256)
    ctypes.c_uint.from_buffer(block).value = 0x2000  # ADJ_SETOFFSET, by nothing
    if libc.clock_adjtime(0, block) < 0:
        raise OSError


attempts = {"the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()), "its course": slew}
for path in glob.glob("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") + ["/proc/sys/kernel/timer_migration"]:
    attempts[path] = lambda path=path: write_same(path)
for name, attempt in attempts.items():
    try:
        attempt()
        print("BREACH: sets", name)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
