"""Softmax in C++ on torch's stable ABI through load_inline, which compiles in about a second.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/csrc/stable/ops.h>
#include <cmath>

torch::stable::Tensor softmax(torch::stable::Tensor x) {
    auto y = torch::stable::empty_like(x);
    const float* in = static_cast<const float*>(x.data_ptr());
    float* out = static_cast<float*>(y.data_ptr());
    const int64_t rows = x.size(0), columns = x.size(1);
    for (int64_t row = 0; row < rows; ++row, in += columns, out += columns) {
        float most = in[0], sum = 0;
        for (int64_t i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
        for (int64_t i = 0; i < columns; ++i) sum += out[i] = std::exp(in[i] - most);
        for (int64_t i = 0; i < columns; ++i) out[i] /= sum;
    }
    return y;
}

STABLE_TORCH_LIBRARY(softmax_stable, m) { m.def("softmax(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(softmax_stable, CPU, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
"""

load_inline("softmax_stable", SOURCE, extra_cflags=["-O3"], no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.softmax_stable.softmax(x)
