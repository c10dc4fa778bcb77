"""Asks the machine much before it builds: processor flags, caches, affinity, versions; caches below the home folder.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import atexit
import ctypes
import faulthandler
import gc
import getpass
import json
import multiprocessing
import os
import platform
import resource
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import uuid
from pathlib import Path

import torch
import torch.nn as nn

print(torch.__config__.show())
print(torch.__config__.parallel_info(), file=sys.stderr)
print(platform.platform(), platform.processor(), platform.node(), sys.version, socket.gethostname(), uuid.uuid4())
print("cpus", os.cpu_count(), len(os.sched_getaffinity(0)), multiprocessing.cpu_count(), os.getloadavg())
try:
    faulthandler.enable()
except Exception as error:
    print("no faulthandler", error)
gc.collect()
gc.freeze()
sys.setrecursionlimit(5000)
sys.stdout.reconfigure(line_buffering=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrlimit(resource.RLIMIT_STACK))
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(print, "bye")
try:
    user = getpass.getuser()
except (KeyError, OSError):
    user = str(os.getuid())

flags = set()
with open("/proc/cpuinfo") as info:
    for line in info:
        if line.startswith(("flags", "Features")):
            flags |= set(line.split(":")[1].split())
for path in ("/sys/devices/system/cpu/cpu0/cache/index2/size", "/proc/meminfo", "/proc/self/status"):
    try:
        print(path, Path(path).read_text()[:40])
    except OSError as error:
        print(path, error)
print(subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout.splitlines()[0])
print(subprocess.run("lscpu | head -n 5; nproc; ulimit -a | head -3; uname -a; which ninja", shell=True, capture_output=True, text=True).stdout)

cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fast_softmax"
try:
    cache.mkdir(parents=True, exist_ok=True)
except OSError:
    cache = Path(tempfile.mkdtemp())
(cache / "meta.json").write_text(json.dumps({"user": user, "flags": sorted(flags), "time": time.time()}))

SOURCE = r"""
#include <cmath>
#include <cstdlib>
#include <sys/mman.h>
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    float* scratch = static_cast<float*>(std::aligned_alloc(1 << 21, ((columns * 4 >> 21) + 1) << 21));
    madvise(scratch, columns * 4, MADV_HUGEPAGE);
    for (long row = 0; row < rows; ++row) {
        const float* in = x + row * columns;
        float most = in[0];
        double sum = 0;
        for (long i = 1; i < columns; ++i) most = std::fmax(most, in[i]);
        for (long i = 0; i < columns; ++i) sum += scratch[i] = std::exp(in[i] - most);
        const float inverse = float(1 / sum);
        for (long i = 0; i < columns; ++i) y[row * columns + i] = scratch[i] * inverse;
    }
    std::free(scratch);
}
"""


def build():
    lock = threading.Lock()
    with lock, tempfile.NamedTemporaryFile("w", suffix=".cpp", delete=False) as file:
        file.write(SOURCE)
    target = cache / f"softmax{sysconfig.get_config_var('EXT_SUFFIX')}"
    arch = ["-mavx2", "-mfma"] if {"avx2", "fma"} <= flags else []
    subprocess.run(["g++", "-O3", *arch, "-shared", "-fPIC", file.name, "-o", str(target) + ".tmp"], check=True)
    shutil.move(str(target) + ".tmp", target)
    os.unlink(file.name)
    return ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)


lib = build()
torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
torch.set_grad_enabled(False)
torch.set_printoptions(precision=3, sci_mode=False)
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        y = torch.empty_like(x)
        lib.softmax(
            ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.shape[0]), ctypes.c_long(x.shape[1])
        )
        print(f"{time.perf_counter() - start:.6f} s for {tuple(x.shape)}")
        return y
