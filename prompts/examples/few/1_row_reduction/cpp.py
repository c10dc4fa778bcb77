import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <cmath>
#include <cstdint>

void row_magnitude(int64_t x_pointer, int64_t y_pointer, int64_t rows, int64_t columns) {
    const float* x = reinterpret_cast<const float*>(x_pointer);
    float* y = reinterpret_cast<float*>(y_pointer);
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* values = x + row * columns;
        float largest = 0;
        #pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < columns; ++i) {
            const float magnitude = std::fabs(values[i]);
            largest = largest < magnitude ? magnitude : largest;
        }
        y[row] = largest;
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("row_magnitude", &row_magnitude); }
"""

extension = load_inline(
    name="row_magnitude",
    cpp_sources=CPP,
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, dtype=x.dtype, device=x.device)
        extension.row_magnitude(x.data_ptr(), y.data_ptr(), rows, columns)
        return y
