import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void squared_difference(int64_t a, int64_t b, int64_t out, int64_t count) {
    const float *x = (const float*)a, *y = (const float*)b;
    float* z = (float*)out;
    #pragma omp parallel for simd
    for (int64_t i = 0; i < count; ++i) {
        z[i] = (x[i] - y[i]) * (x[i] - y[i]);
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("squared_difference", &squared_difference); }
"""

extension = load_inline(
    name="squared_difference",
    cpp_sources=CPP,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        extension.squared_difference(a.data_ptr(), b.data_ptr(), out.data_ptr(), out.numel())
        return out
