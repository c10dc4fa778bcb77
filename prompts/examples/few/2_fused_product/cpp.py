import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void linear_relu_square(int64_t x_pointer, int64_t weight_pointer, int64_t bias_pointer, int64_t y_pointer,
                        int64_t rows, int64_t outputs, int64_t inputs) {
    const float* x = reinterpret_cast<const float*>(x_pointer);
    const float* weight = reinterpret_cast<const float*>(weight_pointer);
    const float* bias = reinterpret_cast<const float*>(bias_pointer);
    float* y = reinterpret_cast<float*>(y_pointer);
    #pragma omp parallel for collapse(2)
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t output = 0; output < outputs; ++output) {
            const float* a = x + row * inputs;
            const float* b = weight + output * inputs;
            float total = 0;
            #pragma omp simd reduction(+ : total)
            for (int64_t i = 0; i < inputs; ++i) total += a[i] * b[i];
            total += bias[output];
            y[row * outputs + output] = total > 0 ? total * total : 0;
        }
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("linear_relu_square", &linear_relu_square); }
"""

extension = load_inline(
    name="linear_relu_square",
    cpp_sources=CPP,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)  # holds the weights, under the names that they have in Model

    def forward(self, x):
        x = x.contiguous()
        weight, bias = self.linear.weight, self.linear.bias
        rows, inputs = x.shape
        outputs = weight.shape[0]
        y = torch.empty(rows, outputs, dtype=x.dtype, device=x.device)
        pointers = (x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr())
        extension.linear_relu_square(*pointers, rows, outputs, inputs)
        return y
