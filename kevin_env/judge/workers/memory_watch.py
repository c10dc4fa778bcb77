"""Limits how much device memory each candidate takes; the driver does not.

NVML, which comes with the driver, reports what each process holds. Where it does not (it is
missing, or numbers processes as another container does), nothing is watched: a candidate that fills
the device makes others fail with `JudgeError`, and gains nothing.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable

import torch

from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.device import nvml_handle
from kevin_env.judge.workers.usage import ancestors
from kevin_env.judge.workers.worker import Worker

WATCH_SECONDS = 0.25
SHARE = 0.6
"""Share of the memory that was free when the judge started, for one candidate.

It is the same for all, so that a verdict does not depend on what else runs on the device. Where
others hold that memory, allocations fail, which the judge does not take for the submission's fault.
It grows if others held memory at the start that they have released since.
"""
LEAST = 2 * CONTEXT
"""What a candidate may hold at least: its context and some kernels."""
_MAX_PROCESSES = 1024
_NOT_AVAILABLE = (1 << 64) - 1

Usage = Callable[[], dict[int, int]]
"""Bytes on the device by process."""


def limit_of(free: int) -> int:
    """Bytes that a candidate may hold on a device with `free` bytes free."""
    return max(LEAST, int(SHARE * free))


class DeviceMemory:
    """Ends candidates that hold more than they may.

    Args:
        usage: Reports what each process holds.
        free: Reports how many bytes are free.
        at_start: Bytes that were free when the judge started.
    """

    def __init__(self, usage: Usage, free: Callable[[], int], at_start: int) -> None:
        self._usage = usage
        self._free = free
        self._at_start = at_start
        self._watched = set[Worker]()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def watch(self, worker: Worker) -> None:
        """Limits a candidate from now on."""
        with self._lock:
            self._watched.add(worker)

    def held(self, worker: Worker) -> int:
        """Bytes that a candidate and all that it started hold now."""
        return sum(used for pid, used in self._usage().items() if worker.pid in ancestors(pid))

    def available(self) -> int:
        """Bytes that other programs leave to this process and those below it.

        At least what they left at the start.
        """
        mine = os.getpid()
        held = sum(n for pid, n in self._usage().items() if pid == mine or mine in ancestors(pid))
        return max(self._at_start, self._free() + held)

    def forget(self, worker: Worker) -> None:
        """Stops watching a candidate that is about to end."""
        with self._lock:
            self._watched.discard(worker)

    def close(self) -> None:
        """Stops watching."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            with contextlib.suppress(OSError):
                self._look()

    def _look(self) -> None:
        with self._lock:
            watched = set(self._watched)
        held = dict.fromkeys((worker.pid for worker in watched), 0)
        for pid, used in (self._usage() if watched else {}).items():
            owner = next((above for above in ancestors(pid) if above in held), None)
            if owner is not None:
                held[owner] += used
        large = [worker for worker in watched if held[worker.pid] > limit_of(self._at_start)]
        limit = limit_of(self.available()) if large else 0
        for worker in large:
            if held[worker.pid] > limit:
                self.forget(worker)
                worker.end(f"more than {limit >> 20} MiB of device memory")


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint), ("compute", ctypes.c_uint),
    )  # fmt: skip


def nvml_usage(device: torch.device) -> Usage | None:
    """A reader for one GPU; None if NVML is missing."""
    nvml = nvml_handle(device)
    if nvml is None or not hasattr(nvml[0], "nvmlDeviceGetComputeRunningProcesses_v3"):
        return None
    handle, ask = nvml[1], nvml[0].nvmlDeviceGetComputeRunningProcesses_v3

    def usage() -> dict[int, int]:
        count, held = ctypes.c_uint(_MAX_PROCESSES), (_Process * _MAX_PROCESSES)()
        if ask(handle, ctypes.byref(count), held):
            return {}
        return {each.pid: each.used for each in held[: count.value] if each.used != _NOT_AVAILABLE}

    return usage
