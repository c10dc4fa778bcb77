"""Addresses as integers and a stream that is handed over, bound by pybind11 alone: what our prompts recommend."""

import torch

CUDA = r"""
#include <cstdint>
__global__ void scale_kernel(const float* in, float* out, int64_t count, float factor) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i] * factor;
}
void scale(int64_t in, int64_t out, int64_t count, float factor, int64_t stream) {
    scale_kernel<<<(count + 255) / 256, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out), count, factor);
}
"""
CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
void scale(int64_t in, int64_t out, int64_t count, float factor, int64_t stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("scale", &scale); }
"""
BUILD = {"cpp_sources": CPP, "cuda_sources": CUDA, "no_implicit_headers": True, "extra_cuda_cflags": ["-O3"]}


def check(ext):
    x = torch.randn(5000, device="cuda")
    y = torch.empty_like(x)
    ext.scale(x.data_ptr(), y.data_ptr(), x.numel(), 0.25, torch.cuda.current_stream().cuda_stream)
    assert torch.equal(y, x * 0.25)
