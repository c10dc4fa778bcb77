"""Has timers end while it stands still, each with hundreds that wait for it: the kernel tells them in others' time.

problem: softmax.py
device: cuda
rules: open
expect: no gain
"""

import ctypes

import torch
import torch.nn as nn

LATER, EVERY = 50_000_000, 1_000_000
libc = ctypes.CDLL(None)
event = ctypes.create_string_buffer(12)
ctypes.memmove(event, (1).to_bytes(4, "little"), 4)
waiting = [pair for pair in ((libc.timerfd_create(1, 0), libc.epoll_create1(0)) for _ in range(1000)) if min(pair) >= 0]
added = [libc.epoll_ctl(queue, 1, timer, event) for timer, _ in waiting for _, queue in waiting[:300]]
if 0 in added:
    print("BREACH", added.count(0), "wait for", len(waiting), "timers")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for place, (timer, _) in enumerate(waiting):
            ends = (ctypes.c_long * 4)(0, 0, 0, LATER + place * EVERY)
            libc.timerfd_settime(timer, 0, ends, None)
        return torch.softmax(x, dim=1)
