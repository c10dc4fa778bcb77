"""What the judge knows of its device. Imports torch; only judge processes use it."""

import ctypes
import os
import platform
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from kevin_env.judge.api import DeviceInfo, JudgeError
from kevin_env.judge.capacity import host_memory

_SHARED_OPTIN, _CLOCK_KHZ, _BUS_BITS, _L2 = 97, 36, 37, 38


def resolve(name: str) -> torch.device:
    """`cpu`, `cuda` or `cuda:i` as a device.

    Raises:
        JudgeError: when it is not there.
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
        raise JudgeError(f"no device {name} here: {count} CUDA device{'s' * (count != 1)} found; use --device cpu")
    return torch.device("cuda", index)


def inform(device: torch.device) -> DeviceInfo:
    """The device's limits and the software on it."""
    return _inform_cuda(device) if device.type == "cuda" else _inform_cpu()


def event_seconds(call: Callable[[], object], count: int) -> float:
    """The median of `count` calls on the current GPU after one that does not count, by events around each."""
    call()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, stop in pairs:
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(stop) for start, stop in pairs) / 1e3


def free_memory(device: torch.device) -> int:
    """Bytes that are free for this process; of a GPU's also those that torch keeps for reuse."""
    if device.type == "cpu":
        return host_memory()
    return torch.cuda.mem_get_info(device)[0] + kept_memory(device)


def kept_memory(device: torch.device) -> int:
    """Bytes of a GPU that torch keeps for reuse in this process."""
    stats = torch.cuda.memory_stats(device)
    return stats.get("reserved_bytes.all.current", 0) - stats.get("allocated_bytes.all.current", 0)


def share_of_free(shares: Mapping[str, float], device: torch.device) -> int:
    """Bytes of the memory that is free for this process, by a share for each kind of device."""
    return int(shares[device.type] * free_memory(device))


def finish(device: torch.device) -> None:
    """Waits for all that was queued on a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def identity(device: torch.device) -> str:
    """A name for the device that every process on this machine agrees on."""
    if device.type == "cpu":
        return "cpu"
    return str(torch.cuda.get_device_properties(device).uuid)


def nvml_handle(device: torch.device) -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """The driver's library NVML, and what it calls a GPU; None where it is not there."""
    with suppress(OSError, AttributeError):
        nvml, handle, name = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), f"GPU-{identity(device)}"
        if not nvml.nvmlInit_v2() and not nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)):
            return nvml, handle
    return None


def host_place(device: torch.device) -> tuple[int, int]:
    """The place of a GPU among those of the host, and how many these are.

    By NVML, since CUDA counts those in `CUDA_VISIBLE_DEVICES` alone: where each process is given one, all are `cuda:0`.
    """
    found = nvml_handle(device)
    if found is not None:
        place, count = ctypes.c_uint(), ctypes.c_uint()
        nvml, handle = found
        failed = nvml.nvmlDeviceGetIndex(handle, ctypes.byref(place)) or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        if not failed:
            return place.value, count.value
    return device.index or 0, torch.cuda.device_count()


def _inform_cpu() -> DeviceInfo:
    return DeviceInfo(
        device="cpu",
        name=_cpu_name(),
        processors=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        versions=_versions() | {"compiler": _first_line(os.environ.get("CXX", "g++"), "--version")},
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
        versions=_versions() | {"cuda": torch.version.cuda or "", "driver": _driver_version(), "compiler": _nvcc()},
    )


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
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    with suppress(PackageNotFoundError):
        versions["triton"] = version("triton")
    return versions


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
