import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>

constexpr int TILE = 32, STEP = 8;  // a thread computes every eighth row of its tile's column: four elements

__global__ void linear_relu_square_kernel(const float* x, const float* weight, const float* bias, float* y,
                                          int64_t rows, int64_t outputs, int64_t inputs) {
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    const int column = threadIdx.x, first = threadIdx.y;
    const int64_t top = int64_t(blockIdx.y) * TILE, left = int64_t(blockIdx.x) * TILE;
    float total[TILE / STEP] = {};
    for (int64_t start = 0; start < inputs; start += TILE) {
        for (int r = first; r < TILE; r += STEP) {
            const bool inside = start + column < inputs;
            a[r][column] = inside && top + r < rows ? x[(top + r) * inputs + start + column] : 0.0f;
            b[r][column] = inside && left + r < outputs ? weight[(left + r) * inputs + start + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            for (int i = 0; i < TILE / STEP; ++i) total[i] += a[first + i * STEP][k] * b[column][k];
        __syncthreads();
    }
    for (int i = 0; i < TILE / STEP; ++i) {
        const int64_t row = top + first + i * STEP, output = left + column;
        if (row < rows && output < outputs) {
            const float value = fmaxf(total[i] + bias[output], 0.0f);
            y[row * outputs + output] = value * value;
        }
    }
}

void linear_relu_square(int64_t x, int64_t weight, int64_t bias, int64_t y, int64_t rows, int64_t outputs,
                        int64_t inputs, int64_t stream) {
    const dim3 grid(unsigned((outputs + TILE - 1) / TILE), unsigned((rows + TILE - 1) / TILE));
    linear_relu_square_kernel<<<grid, dim3(TILE, STEP), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(weight),
        reinterpret_cast<const float*>(bias), reinterpret_cast<float*>(y), rows, outputs, inputs);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void linear_relu_square(int64_t x, int64_t weight, int64_t bias, int64_t y, int64_t rows, int64_t outputs,
                        int64_t inputs, int64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("linear_relu_square", &linear_relu_square); }
"""

extension = load_inline(
    name="linear_relu_square",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
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
        stream = torch.cuda.current_stream().cuda_stream
        extension.linear_relu_square(*pointers, rows, outputs, inputs, stream)
        return y
