"""Watches how much device memory each candidate takes: the driver bounds nobody, and all share one
device.

NVML, which comes with the driver, tells what each process holds. Where it does not (it is not
there, or it knows processes by numbers of another container), nothing is watched: a candidate that
fills the device then makes others fail with `JudgeError`, and gains nothing by it.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable
from weakref import WeakSet

import torch

from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.device import nvml_handle
from kevin_env.judge.workers.usage import ancestors
from kevin_env.judge.workers.worker import Worker

WATCH_SECONDS = 0.25
SHARE = 0.6
"""Of what was free on the device when a candidate got its submission."""
LEAST = 2 * CONTEXT
"""What a candidate may hold however little was free: its context and some kernels are no fault of
its own. What it lacks then it asks for in vain, and the judge sees that strangers hold it.
"""
_MAX_PROCESSES = 1024
_NOT_AVAILABLE = (1 << 64) - 1

Usage = Callable[[], dict[int, int]]
"""Bytes on the device by process."""


def limit_of(free: int) -> int:
    """Bytes that a candidate may hold of a device with so many free besides what it holds already."""
    return max(LEAST, int(SHARE * free))


class DeviceMemory:
    """Ends candidates that hold more than they may.

    Args:
        usage: Tells what each process holds.
        busy: Held while something is timed; then nothing is asked.
    """

    def __init__(self, usage: Usage, busy: threading.Lock) -> None:
        self._usage = usage
        self._busy = busy
        self._watched: dict[Worker, int] = {}
        self._ended = WeakSet[Worker]()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def watch(self, worker: Worker, limit: int) -> None:
        """From now on it may hold `limit` bytes."""
        with self._lock:
            self._watched[worker] = limit

    def ended(self, worker: Worker) -> bool:
        """Whether it held more, and was ended for it."""
        return worker in self._ended

    def held(self, worker: Worker) -> int:
        """Bytes that a candidate holds now, with all that it started."""
        return sum(used for pid, used in self._usage().items() if worker.pid in ancestors(pid))

    def forget(self, worker: Worker) -> None:
        """It is about to end."""
        with self._lock:
            self._watched.pop(worker, None)

    def close(self) -> None:
        """Watches no more."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            if not self._busy.locked():
                with contextlib.suppress(OSError):
                    self._look()

    def _look(self) -> None:
        with self._lock:
            watched = dict(self._watched)
        held = dict.fromkeys((worker.pid for worker in watched), 0)
        for pid, used in (self._usage() if watched else {}).items():
            for above in ancestors(pid):
                if above in held:
                    held[above] += used
        for worker, limit in watched.items():
            if held[worker.pid] > limit:
                self.forget(worker)
                self._ended.add(worker)
                worker.end(f"more than {limit >> 20} MiB of device memory")


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)
    )  # fmt: skip


def nvml_usage(device: torch.device) -> Usage | None:
    """A reader for one GPU; None where NVML is not there."""
    found = nvml_handle(device)
    if found is None or not hasattr(found[0], "nvmlDeviceGetComputeRunningProcesses_v3"):
        return None
    handle, ask = found[1], found[0].nvmlDeviceGetComputeRunningProcesses_v3

    def usage() -> dict[int, int]:
        count, found = ctypes.c_uint(_MAX_PROCESSES), (_Process * _MAX_PROCESSES)()
        if ask(handle, ctypes.byref(count), found):
            return {}
        return {each.pid: each.used for each in found[: count.value] if each.used != _NOT_AVAILABLE}

    return usage
