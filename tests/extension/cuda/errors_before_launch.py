"""What is checked before a launch, with the texts that torch composes."""

import pytest
import torch

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
__global__ void nothing_kernel() {}
void checked(torch::Tensor a, torch::Tensor b, int threads) {
    TORCH_CHECK(a.is_cuda(), "a must be a CUDA tensor");
    TORCH_CHECK(a.device() == b.device(), "devices differ: ", a.device(), " and ", b.device());
    TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ: ", a.sizes(), " and ", b.sizes());
    at::cuda::CUDAGuard guard(a.device());
    nothing_kernel<<<1, threads>>>();
    AT_CUDA_CHECK(cudaGetLastError());
}
"""
CPP = "void checked(torch::Tensor a, torch::Tensor b, int threads);"
BUILD = {"cpp_sources": CPP, "cuda_sources": CUDA, "functions": ["checked"]}


def check(ext):
    x = torch.zeros(2, 3, device="cuda")
    assert ext.checked(x, x, 32) is None
    for arguments, text in (
        ((x.cpu(), x, 1), "^a must be a CUDA tensor$"),
        ((x, x.cpu(), 1), "^devices differ: cuda:0 and cpu$"),
        ((x, x.t(), 1), r"^sizes differ: \[2, 3\] and \[3, 2\]$"),
        ((x, x, 5000), "^CUDA error: invalid (configuration argument|argument)"),
    ):
        with pytest.raises(RuntimeError, match=text):
            ext.checked(*arguments)
