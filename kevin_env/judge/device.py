"""What the judge knows about its device. Imports torch; only judge processes use it."""

import ctypes
import itertools
import os
import platform
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kevin_env.judge.api import DeviceInfo, JudgeError
from kevin_env.judge.capacity import host_memory
from kevin_env.languages import installed

_SHARED_OPTIN, _CLOCK_KHZ, _BUS_BITS, _L2 = 97, 36, 37, 38
_SM_CLOCK_KHZ, _SM_SHARED, _SM_REGISTERS = 13, 81, 82

_FLOPS_A_CLOCK: dict[tuple[int, int], dict[str, int]] = {
    (8, 0): {"FP32": 128, "TF32 tensor cores": 1024, "FP16/BF16 tensor cores": 2048},
    (8, 6): {"FP32": 256, "TF32 tensor cores": 256, "FP16/BF16 tensor cores": 512},
    (8, 9): {"FP32": 256, "TF32 tensor cores": 256, "FP16/BF16 tensor cores": 512},
    (9, 0): {"FP32": 256, "TF32 tensor cores": 2048, "FP16/BF16 tensor cores": 4096},
    (10, 0): {"FP32": 256, "TF32 tensor cores": 4096, "FP16/BF16 tensor cores": 8192},
}
"""Dense FLOPs of a streaming multiprocessor per clock, accumulated in FP32.

Source: NVIDIA's architecture white papers.
"""
_VECTORS = (
    ("avx2", "AVX2"), ("fma", "FMA"), ("avx512f", "AVX-512"), ("avx512_bf16", "AVX-512 BF16"),
    ("amx_tile", "AMX"), ("asimd", "NEON"), ("sve", "SVE"),
)  # fmt: skip


def resolve(name: str) -> torch.device:
    """`cpu`, `cuda` or `cuda:i` as a device.

    Raises:
        JudgeError: if it does not exist.
    """
    if name == "cpu":
        return torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type != "cuda":
        raise JudgeError(f"unknown device {name!r}: use cpu, cuda or cuda:1")
    count = torch.cuda.device_count()
    index = device.index or 0
    if index >= count:
        devices = f"{count} CUDA device{'s' * (count != 1)} found"
        raise JudgeError(f"no device {name} here: {devices}; choose the device cpu")
    return torch.device("cuda", index)


def inform(device: torch.device) -> DeviceInfo:
    """The device's limits and the software on it."""
    return _inform_cuda(device) if device.type == "cuda" else _inform_cpu()


def event_seconds(call: Callable[[], object], count: int) -> float:
    """The median of `count` calls on the current GPU, by events, after a warm-up call."""
    call()
    pairs = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(count)
    ]
    for start, stop in pairs:
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(stop) for start, stop in pairs) / 1e3


def free_memory(device: torch.device) -> int:
    """Bytes that are free for this process; on a GPU including what torch caches."""
    if device.type == "cpu":
        return host_memory()
    return unused_memory(device) + kept_memory(device)


def unused_memory(device: torch.device) -> int:
    """Bytes of a GPU that no process holds."""
    return torch.cuda.mem_get_info(device)[0]


def kept_memory(device: torch.device) -> int:
    """Bytes of a GPU that torch caches for reuse in this process."""
    if not torch.cuda.is_initialized():
        return 0
    stats = torch.cuda.memory_stats_as_nested_dict(device)  # flattening it takes as long again
    return stats["reserved_bytes"]["all"]["current"] - stats["allocated_bytes"]["all"]["current"]


def trim(device: torch.device, most: float) -> None:
    """Frees what torch caches in this process beyond `most` bytes; others may need it."""
    if kept_memory(device) > most:
        torch.cuda.empty_cache()


def finish(device: torch.device) -> None:
    """Waits for everything that is queued on a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class StallWatch:
    """Detects that a GPU has stopped making progress. Thread-safe.

    Args:
        mark: Records an event behind all queued work; by default in the default stream.
        seconds: An event that is not reached within this time is a stall. Longer than any call may
            take (`Settings.call_timeout`).
        clock: Returns seconds.
    """

    def __init__(
        self, mark: Callable[[], Any] | None = None, seconds: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._mark = mark or _marked
        self._seconds = seconds
        self._clock = clock
        self._event: Any = None
        self._since = 0.0
        self._lock = threading.Lock()

    def stalled(self) -> bool:
        """Call it periodically, in a thread whose current device is the GPU."""
        with self._lock:
            if self._event is None or self._event.query():
                self._event, self._since = self._mark(), self._clock()
            return self._clock() - self._since > self._seconds

    def trouble(self, device: torch.device) -> str | None:
        """Why this process can use a device no more; None if all is well, as always on a CPU.

        After a kernel of a reference has failed, every call fails until the process ends. Call it
        as `stalled`.
        """
        if device.type == "cuda":
            try:
                torch.cuda.mem_get_info(device)
                if self.stalled():
                    return "the GPU has stopped making progress"
            except RuntimeError as error:
                return str(error).partition("\n")[0]
        return None


def _marked() -> Any:
    event = torch.cuda.Event()
    event.record(torch.cuda.default_stream())
    return event


def identity(device: torch.device) -> str:
    """A name for the device that every process on this machine agrees on."""
    if device.type == "cpu":
        return "cpu"
    return str(torch.cuda.get_device_properties(device).uuid)


def nvml_handle(device: torch.device) -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """The driver's library NVML and its handle of a GPU; None if the library is missing."""
    with suppress(OSError, AttributeError):
        nvml, handle, name = (
            ctypes.CDLL("libnvidia-ml.so.1"),
            ctypes.c_void_p(),
            f"GPU-{identity(device)}",
        )
        if not nvml.nvmlInit_v2() and not nvml.nvmlDeviceGetHandleByUUID(
            name.encode(), ctypes.byref(handle)
        ):
            return nvml, handle
    return None


@dataclass(frozen=True)
class Gpu:
    """How a GPU is named: its node in /dev, such as `nvidia0`, and what CUDA calls it."""

    node: str
    uuid: str


def gpu_of(device: torch.device) -> Gpu | None:
    """The names of a GPU; None without NVML, or for a part of a GPU (MIG)."""
    uuid, nvml, minor = f"GPU-{identity(device)}", nvml_handle(device), ctypes.c_uint()
    if nvml is None or nvml[0].nvmlDeviceGetMinorNumber(nvml[1], ctypes.byref(minor)):
        return None
    return Gpu(f"nvidia{minor.value}", uuid)


def gpus_of_host(device: torch.device) -> int:
    """Number of GPUs of the host, by NVML: CUDA only counts those in `CUDA_VISIBLE_DEVICES`."""
    nvml, count = nvml_handle(device), ctypes.c_uint()
    if nvml is not None and not nvml[0].nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return count.value
    return torch.cuda.device_count()


def _inform_cpu() -> DeviceInfo:
    return DeviceInfo(
        device="cpu",
        name=_cpu_name(),
        processors=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        versions=_versions() | {"compiler": _first_line(os.environ.get("CXX", "g++"), "--version")},
        instructions=_vector_instructions(),
        caches=_caches(),
    )


def _inform_cuda(device: torch.device) -> DeviceInfo:
    properties = torch.cuda.get_device_properties(device)
    # double data rate: two transfers a clock (CUDA Programming Guide, theoretical bandwidth)
    bandwidth = 2 * _attribute(_CLOCK_KHZ, device) * 1e3 * _attribute(_BUS_BITS, device) / 8
    return DeviceInfo(
        device=str(device),
        name=properties.name,
        capability=f"{properties.major}.{properties.minor}",
        processors=properties.multi_processor_count,
        memory=properties.total_memory,
        shared_memory=_attribute(_SHARED_OPTIN, device),
        l2=_attribute(_L2, device),
        bandwidth=bandwidth,
        sm_shared_memory=_attribute(_SM_SHARED, device),
        sm_registers=_attribute(_SM_REGISTERS, device),
        peaks=_peaks(properties, _attribute(_SM_CLOCK_KHZ, device) * 1e3),
        versions=_versions()
        | {"cuda": torch.version.cuda or "", "driver": _driver_version(), "compiler": _nvcc()},
    )


def _peaks(properties: Any, clock: float) -> dict[str, float]:
    """FLOP/s by arithmetic; empty for an architecture that is not listed."""
    rates = _FLOPS_A_CLOCK.get((properties.major, properties.minor), {})
    return {name: rate * properties.multi_processor_count * clock for name, rate in rates.items()}


def _vector_instructions() -> str:
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return ""
    return ", ".join(name for flag, name in _VECTORS if flag in flags)


def _caches() -> tuple[int, ...]:
    names = ("SC_LEVEL1_DCACHE_SIZE", "SC_LEVEL2_CACHE_SIZE", "SC_LEVEL3_CACHE_SIZE")
    sizes = [os.sysconf(name) if name in os.sysconf_names else 0 for name in names]
    return tuple(itertools.takewhile(lambda size: size > 0, sizes))


def _attribute(number: int, device: torch.device) -> int:
    value = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(value), number, device.index or 0)
    return value.value


def _driver_version() -> str:
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _nvcc() -> str:
    home = os.environ.get("CUDA_HOME")
    nvcc = shutil.which("nvcc") or (f"{home}/bin/nvcc" if home else "")
    return _first_line(nvcc, "--version", line=-1) if nvcc else ""


def _versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "torch": str(torch.__version__)}
    return own | installed()


def _first_line(*command: str, line: int = 0) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.strip().splitlines()[line]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def _cpu_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
