"""Softmax in C++ through load_inline as most models write it: torch's headers, a function that takes a tensor.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

torch::Tensor softmax_forward(torch::Tensor input) {
    TORCH_CHECK(input.dim() == 2, "input must be 2D");
    auto x = input.contiguous();
    auto output = torch::empty_like(x);
    const int64_t rows = x.size(0), columns = x.size(1);
    const float* in = x.data_ptr<float>();
    float* out = output.data_ptr<float>();
    for (int64_t row = 0; row < rows; ++row, in += columns, out += columns) {
        float most = in[0], sum = 0.0f;
        for (int64_t i = 1; i < columns; ++i) most = std::max(most, in[i]);
        for (int64_t i = 0; i < columns; ++i) sum += out[i] = std::exp(in[i] - most);
        for (int64_t i = 0; i < columns; ++i) out[i] /= sum;
    }
    return output;
}
"""

softmax = load_inline(name="softmax_forward", cpp_sources=CPP, functions=["softmax_forward"], extra_cflags=["-O3"], verbose=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = softmax

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.softmax.softmax_forward(x)
