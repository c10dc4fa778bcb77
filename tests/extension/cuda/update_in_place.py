"""Several tensors changed in place; nothing is returned."""

import torch

CUDA = r"""
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
__global__ void sgd_kernel(float* p, const float* g, float* m, float rate, float momentum, bool nesterov, long n) {
    const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    m[i] = momentum * m[i] + g[i];
    p[i] -= rate * (nesterov ? g[i] + momentum * m[i] : m[i]);
}
void sgd(std::vector<at::Tensor> parameters, std::vector<at::Tensor> gradients, std::vector<at::Tensor> moments,
         float rate, float momentum, bool nesterov) {
    TORCH_CHECK(parameters.size() == gradients.size(), parameters.size(), " != ", gradients.size());
    auto stream = at::cuda::getCurrentCUDAStream();
    for (size_t i = 0; i < parameters.size(); i++) {
        const long n = parameters[i].numel();
        sgd_kernel<<<(n + 127) / 128, 128, 0, stream>>>(
            parameters[i].data_ptr<float>(), gradients[i].data_ptr<float>(), moments[i].data_ptr<float>(), rate, momentum,
            nesterov, n);
    }
    C10_CUDA_CHECK(cudaGetLastError());
}
"""
CPP = r"""
#include <vector>
void sgd(std::vector<at::Tensor> parameters, std::vector<at::Tensor> gradients, std::vector<at::Tensor> moments,
         float rate, float momentum, bool nesterov);
"""
BUILD = {"cpp_sources": CPP, "cuda_sources": CUDA, "functions": ["sgd"]}


def check(ext):
    p, g, m = ([torch.randn(n, device="cuda") for n in (5, 700)] for _ in range(3))
    moved = [0.9 * b + a for a, b in zip(g, m, strict=True)]
    expected = [a - 0.1 * b for a, b in zip(p, moved, strict=True)]
    ext.sgd(p, g, m, 0.1, 0.9, False)
    torch.testing.assert_close(p, expected)
    torch.testing.assert_close(m, moved)
