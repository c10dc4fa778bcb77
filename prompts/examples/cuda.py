import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>

__global__ void squared_difference_kernel(const float* a, const float* b, float* out, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = (a[i] - b[i]) * (a[i] - b[i]);
    }
}

void squared_difference(int64_t a, int64_t b, int64_t out, int64_t count, int64_t stream) {
    squared_difference_kernel<<<(count + 255) / 256, 256, 0, (cudaStream_t)stream>>>(
        (const float*)a, (const float*)b, (float*)out, count);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void squared_difference(int64_t a, int64_t b, int64_t out, int64_t count, int64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("squared_difference", &squared_difference); }
"""

extension = load_inline(
    name="squared_difference",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        stream = torch.cuda.current_stream().cuda_stream
        extension.squared_difference(a.data_ptr(), b.data_ptr(), out.data_ptr(), out.numel(), stream)
        return out
