"""Launches blocks of 2048 threads, which CUDA refuses, and does not check for errors.

problem: relu.py
device: cuda
rules: kernel
expect: correctness/not_written or correctness/values
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void relu_kernel(const float* in, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i] > 0.f ? in[i] : 0.f;
}
torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int count = x.numel();
    auto stream = at::cuda::getCurrentCUDAStream();
    relu_kernel<<<(count + 2047) / 2048, 2048, 0, stream>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), count);
    return out;
}
"""
module = load_inline(
    name="relu_of_many_threads",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.relu(x)
