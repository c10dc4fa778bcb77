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

void gradients(int64_t grad_out, int64_t a, int64_t b, int64_t grad_a, int64_t grad_b, int64_t count) {
    const float *g = (const float*)grad_out, *x = (const float*)a, *y = (const float*)b;
    float *p = (float*)grad_a, *q = (float*)grad_b;
    #pragma omp parallel for simd
    for (int64_t i = 0; i < count; ++i) {
        float slope = 2 * g[i] * (x[i] - y[i]);
        p[i] = slope;
        q[i] = -slope;
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("squared_difference", &squared_difference);
    module.def("gradients", &gradients);
}
"""

extension = load_inline(
    name="squared_difference",
    cpp_sources=CPP,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
    no_implicit_headers=True,
)


class SquaredDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        extension.squared_difference(a.data_ptr(), b.data_ptr(), out.data_ptr(), out.numel())
        ctx.save_for_backward(a, b)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        a, b = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        grad_a, grad_b = torch.empty_like(a), torch.empty_like(b)
        extension.gradients(*[each.data_ptr() for each in (grad_out, a, b, grad_a, grad_b)], a.numel())
        return grad_a, grad_b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return SquaredDifference.apply(a, b)
