"""Addition with what load_inline includes by itself."""

import torch

CUDA = r"""
__global__ void add_kernel(const float* a, const float* b, float* out, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = a[i] + b[i];
}

torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b) {
    auto size = a.numel();
    auto out = torch::zeros_like(a);
    const int block = 256;
    add_kernel<<<(size + block - 1) / block, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), size);
    return out;
}
"""
BUILD = {
    "cpp_sources": "torch::Tensor add_cuda(torch::Tensor a, torch::Tensor b);", "cuda_sources": CUDA,
    "functions": ["add_cuda"], "verbose": True,
}  # fmt: skip


def check(ext):
    a, b = torch.randn(2, 1000, device="cuda")
    assert torch.equal(ext.add_cuda(a, b), a + b)
