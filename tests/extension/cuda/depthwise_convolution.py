"""A depthwise convolution over four dimensions, with stride and padding as numbers."""

import torch

CUDA = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void depthwise_kernel(
    const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int channels, int height, int width,
    int out_height, int out_width, int kernel, int stride, int padding) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, plane = blockIdx.z;
    if (column >= out_width) return;
    float sum = 0.0f;
    for (int i = 0; i < kernel; ++i)
        for (int j = 0; j < kernel; ++j) {
            const int r = row * stride - padding + i, c = column * stride - padding + j;
            if (r >= 0 && r < height && c >= 0 && c < width)
                sum += x[(plane * height + r) * width + c] * w[((plane % channels) * kernel + i) * kernel + j];
        }
    y[(plane * out_height + row) * out_width + column] = sum;
}

torch::Tensor depthwise(torch::Tensor x, torch::Tensor w, int64_t stride, int64_t padding) {
    TORCH_CHECK(x.dim() == 4 && w.dim() == 4, "expected 4D tensors, got ", x.dim(), "D and ", w.dim(), "D");
    const int n = x.size(0), c = x.size(1), h = x.size(2), wd = x.size(3), k = w.size(2);
    const int oh = (h + 2 * padding - k) / stride + 1, ow = (wd + 2 * padding - k) / stride + 1;
    auto y = torch::zeros({n, c, oh, ow}, x.options());
    dim3 blocks((ow + 63) / 64, oh, n * c);
    depthwise_kernel<<<blocks, 64>>>(
        x.contiguous().data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), c, h, wd, oh, ow, k, stride, padding);
    return y;
}
"""
CPP = "torch::Tensor depthwise(torch::Tensor x, torch::Tensor w, int64_t stride, int64_t padding);"
BUILD = {"cpp_sources": [CPP], "cuda_sources": [CUDA], "functions": ["depthwise"], "extra_cflags": ["-O3"]}


def check(ext):
    x, w = torch.randn(2, 3, 17, 19, device="cuda"), torch.randn(3, 1, 3, 3, device="cuda")
    expected = torch.nn.functional.conv2d(x.double(), w.double(), stride=2, padding=1, groups=3).float()
    torch.testing.assert_close(ext.depthwise(x, w, 2, 1), expected, atol=1e-4, rtol=1e-4)
