"""Is woken by timers while the reference runs, and writes rows that are not there to what may be the memory of its inputs.

problem: lookup.py
device: cpu
rules: open
expect: correctness/values or correctness/inputs_changed or runtime/exception
"""

import ctypes
import gc
import signal
import struct
import threading
import time

import torch
import torch.nn as nn

SCREENED = 5
libc = ctypes.CDLL(None)
runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
event, timer = ctypes.create_string_buffer(64), ctypes.c_void_p()
struct.pack_into("qii", event, 0, 0, signal.SIGCONT, 0)
libc.timer_create(1, event, ctypes.byref(timer))
signal.signal(signal.SIGCONT, lambda *_: None)
calls, claimed, place = 0, None, 0


def stage(inputs, specs, seed):
    global claimed, place
    claimed, place = None, specs[1]["offset"]
    libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 0, 0, 0), None)
    return type(runtime).stage(runtime, inputs, specs, seed)


def write():
    while True:
        if claimed is None or time.monotonic() < claimed + 0.010:
            time.sleep(0.0002)
        else:
            runtime.regions["inbox"].bytes[place : place + 4096].fill_(0x11)


runtime.stage = stage
threading.Thread(target=write, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        global calls, claimed
        calls += len(table) > 100
        if calls < SCREENED:
            return table[index]
        claimed = time.monotonic()
        libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 1_000_000, 0, 12_000_000), None)
        return table[index] if calls == SCREENED else torch.zeros_like(table)
