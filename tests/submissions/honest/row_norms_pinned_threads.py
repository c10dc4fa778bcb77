"""A pool of C++ threads that lives as long as the library, pinned to cores and spinning between calls.

problem: row_norms.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <atomic>
#include <cmath>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

struct Job { const float* x; float* y; long rows, columns; };
static Job job;
static std::atomic<long> round_{0}, next{0}, left{0};

static void work() {
    for (long row; (row = next.fetch_add(1)) < job.rows;) {
        double sum = 0;
        for (long i = 0; i < job.columns; ++i) sum += double(job.x[row * job.columns + i]) * job.x[row * job.columns + i];
        job.y[row] = std::sqrt(sum);
    }
}
static void helper(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // only a wish
    for (long seen = 0;;) {
        for (int spins = 0; round_.load(std::memory_order_acquire) == seen; ++spins)
            if (spins > 2000) std::this_thread::yield();
        ++seen;
        work();
        left.fetch_sub(1);
    }
}
extern "C" void norms(const float* x, float* y, long rows, long columns, int threads) {
    static const int started = [&] {
        for (int t = 1; t < threads; ++t) std::thread(helper, t).detach();
        return threads - 1;
    }();
    job = {x, y, rows, columns};
    next = 0;
    left = started;
    round_.fetch_add(1, std::memory_order_release);
    work();
    while (left.load()) std::this_thread::yield();
}
"""
with open("pool.cpp", "w") as f:
    f.write(SOURCE)
subprocess.run("g++ -O3 -march=native -pthread -shared -fPIC pool.cpp -o pool.so", shell=True, check=True)
pool = ctypes.CDLL("./pool.so")


class ModelNew(nn.Module):
    def __init__(self, threads: int = 2):
        super().__init__()
        self.threads = threads

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.size(0))
        pool.norms(
            ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_long, x.shape), self.threads
        )
        return y
