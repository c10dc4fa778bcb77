"""Running sums of integers in CUDA by a scan within warps, then of warps, then of what a block has carried on.

problem: running_count.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
typedef long long Int;

__global__ void scan(const Int* x, Int* y, int columns) {
    __shared__ Int warps[32];
    x += (long)blockIdx.x * columns;
    y += (long)blockIdx.x * columns;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Int carried = 0;
    for (int first = 0; first < columns; first += blockDim.x) {
        const int i = first + threadIdx.x;
        Int sum = i < columns ? x[i] : 0;
        for (int d = 1; d < 32; d *= 2) {
            const Int before = __shfl_up_sync(~0u, sum, d);
            if (lane >= d) sum += before;
        }
        if (lane == 31) warps[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            Int total = warps[lane];
            for (int d = 1; d < 32; d *= 2) {
                const Int before = __shfl_up_sync(~0u, total, d);
                if (lane >= d) total += before;
            }
            warps[lane] = total;
        }
        __syncthreads();
        if (warp) sum += warps[warp - 1];
        if (i < columns) y[i] = sum + carried;
        carried += warps[31];
        __syncthreads();
    }
}

extern "C" int running(const Int* x, Int* y, int rows, int columns, cudaStream_t stream) {
    scan<<<rows, 1024, 0, stream>>>(x, y, columns);
    return cudaPeekAtLastError();
}
"""

with open("scan.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(f"nvcc -O3 -arch={arch} -shared -Xcompiler -fPIC scan.cu -o scan.so".split(), check=True)
lib = ctypes.CDLL("./scan.so")
lib.running.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.device(x.device):
            y = torch.empty_like(x)
            stream = torch.cuda.current_stream().cuda_stream
            lib.running(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], stream)
        return y
