"""Row norms in C++ with double accumulators, on a crew of threads that waits for work between calls.

problem: row_norms.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
import textwrap

import torch
import torch.nn as nn

SOURCE = textwrap.dedent(r"""
    #include <cmath>
    #include <condition_variable>
    #include <functional>
    #include <mutex>
    #include <thread>

    class Crew {
      public:
        explicit Crew(int size) : size(size) {
            for (int i = 0; i < size; ++i) std::thread([this, i] { serve(i); }).detach();
        }
        void run(std::function<void(int)> job) {
            std::unique_lock lock(mutex);
            work = std::move(job);
            left = size;
            ++round;
            changed.notify_all();
            changed.wait(lock, [this] { return left == 0; });
        }
        const int size;

      private:
        void serve(int rank) {
            for (long seen = 0;;) {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return round != seen; });
                seen = round;
                lock.unlock();
                work(rank);
                lock.lock();
                if (--left == 0) changed.notify_all();
            }
        }
        std::mutex mutex;
        std::condition_variable changed;
        std::function<void(int)> work;
        int left = 0;
        long round = 0;
    };

    extern "C" void norms(const float* x, float* y, long rows, long columns) {
        static Crew* crew = new Crew(2);
        crew->run([=](int rank) {
            for (long row = rank; row < rows; row += crew->size) {
                double sum = 0;
                for (long i = 0; i < columns; ++i) sum += double(x[row * columns + i]) * x[row * columns + i];
                y[row] = float(std::sqrt(sum));
            }
        });
    }
""")

with open("norms.cpp", "w") as file:
    print(SOURCE, file=file)
subprocess.run(
    ["g++", "-std=c++17", "-O3", "-march=native", "-pthread", "-shared", "-fPIC", "norms.cpp", "-o", "norms.so"],
    check=True,
)
lib = ctypes.CDLL("./norms.so")
lib.norms.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[0])
        lib.norms(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
