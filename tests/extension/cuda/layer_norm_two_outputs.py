"""LayerNorm with a default epsilon; the output and both moments are returned."""

import torch

CUDA = r"""
#include <torch/extension.h>
#include <vector>

__global__ void layer_norm_kernel(
    const float* x, const float* weight, const float* bias, float* y, float* mean, float* rstd, int width, float eps) {
    __shared__ float sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    x += blockIdx.x * width, y += blockIdx.x * width;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += x[i], squares += x[i] * x[i];
    atomicAdd(&sums[0], sum), atomicAdd(&sums[1], squares);
    __syncthreads();
    const float m = sums[0] / width, r = rsqrtf(sums[1] / width - m * m + eps);
    for (int i = threadIdx.x; i < width; i += blockDim.x) y[i] = (x[i] - m) * r * weight[i] + bias[i];
    if (threadIdx.x == 0) mean[blockIdx.x] = m, rstd[blockIdx.x] = r;
}

std::vector<torch::Tensor> layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    TORCH_CHECK(x.dtype() == torch::kFloat32, "x must be float32");
    const auto width = x.size(-1), rows = x.numel() / width;
    auto y = torch::empty_like(x);
    auto mean = torch::empty({rows}, x.options()), rstd = torch::empty({rows}, x.options());
    layer_norm_kernel<<<rows, 128>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        mean.data_ptr<float>(), rstd.data_ptr<float>(), static_cast<int>(width), static_cast<float>(eps));
    return {y, mean, rstd};
}
"""
CPP = r"""
#include <torch/extension.h>
std::vector<torch::Tensor> layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("layer_norm", &layer_norm, "LayerNorm", py::arg("x"), py::arg("weight"), py::arg("bias"), py::arg("eps") = 1e-5);
}
"""
BUILD = {"cpp_sources": CPP, "cuda_sources": CUDA}


def check(ext):
    x, weight, bias = torch.randn(20, 96, device="cuda"), torch.randn(96, device="cuda"), torch.randn(96, device="cuda")
    y, mean, _ = ext.layer_norm(x, weight, bias=bias)
    torch.testing.assert_close(y, torch.layer_norm(x, (96,), weight, bias), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(mean, x.mean(1), atol=1e-5, rtol=1e-4)
