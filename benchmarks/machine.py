"""Resource usage from /proc and NVML, without a context on the device. Used by other scripts."""

import contextlib
import ctypes
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from kevin_env.judge.workers.usage import descendants

SAMPLE_SECONDS = 0.1


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """That many processes that each keep a processor busy."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Gpu:
    """One GPU by its number; with CUDA_VISIBLE_DEVICES, the first selected one is 0.

    Raises:
        OSError: if NVML is missing or does not know it.
    """

    def __init__(self, number: int) -> None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        name = visible.split(",")[number].strip() if visible else str(number)
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._handle = ctypes.c_void_p()
        code = self._nvml.nvmlInit_v2()
        if name.isdigit():
            code = code or self._nvml.nvmlDeviceGetHandleByIndex_v2(
                int(name), ctypes.byref(self._handle)
            )
        else:
            code = code or self._nvml.nvmlDeviceGetHandleByUUID(
                name.encode(), ctypes.byref(self._handle)
            )
        if code:
            raise OSError(f"NVML does not know GPU {name}: error {code}")

    def busy(self) -> float:
        """The share of the last sampling period in which a kernel ran."""
        use = _Utilization()
        self._nvml.nvmlDeviceGetUtilizationRates(self._handle, ctypes.byref(use))
        return use.gpu / 100

    def used(self) -> int:
        """Used bytes of its memory, by all processes."""
        memory = _Memory()
        self._nvml.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory))
        return memory.used


class Busy:
    """The load of CPU cores and GPUs during a block."""

    def __init__(self, gpus: int) -> None:
        self._gpus: list[Gpu] = []
        with contextlib.suppress(OSError):
            self._gpus = [Gpu(number) for number in range(gpus)]
        self._seen: list[list[float]] = [[] for _ in self._gpus]
        self._ended = threading.Event()
        self.cores = 0.0

    @property
    def gpus(self) -> list[float]:
        """The mean utilization of each GPU; empty if unknown."""
        return [statistics.mean(seen) for seen in self._seen if seen]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Samples until the block ends."""
        thread = threading.Thread(target=self._sample, daemon=True)
        before = _core_times()
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            idle, total = (
                after - first for after, first in zip(_core_times(), before, strict=True)
            )
            self.cores = 1 - idle / max(total, 1)

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for seen, gpu in zip(self._seen, self._gpus, strict=True):
                seen.append(gpu.busy())


def device_memory(device: str) -> int:
    """Bytes in use on the first GPU; 0 on a CPU, and if unknown."""
    with contextlib.suppress(OSError):
        return Gpu(0).used() if device == "cuda" else 0
    return 0


def proportional_size(pids: list[int]) -> int:
    """Proportional set size (PSS) of processes in bytes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def processes_of_judge(client: int) -> dict[str, list[int]]:
    """The processes below a client that has one idle judge: `judge`, `fork server` and
    `candidates`.
    """
    processes: dict[str, list[int]] = {"judge": [], "fork server": [], "candidates": []}
    for pid in descendants(client):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if "kevin_env.judge.server" in words:
            processes["judge"].append(pid)
        elif (
            "kevin_env.judge.workers.forkserver" in words
        ):  # supervisors and candidates are forks of it
            processes["candidates" if processes["fork server"] else "fork server"].append(pid)
    return processes


def processor_seconds() -> float:
    """What all processes of this machine have used."""
    idle, total = _core_times()
    return (total - idle) / os.sysconf("SC_CLK_TCK")


def _core_times() -> tuple[int, int]:
    """Ticks that all cores were idle, and all ticks."""
    times = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return times[3] + times[4], sum(times)
