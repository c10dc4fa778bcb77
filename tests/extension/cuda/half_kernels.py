"""16-bit floats by torch's types and by CUDA's own."""

import torch

CUDA = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <ATen/cuda/CUDAContext.h>

template <typename T>
__global__ void scale_kernel(const T* in, T* out, float factor, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) out[i] = static_cast<T>(static_cast<float>(in[i]) * factor);
}
__global__ void add_kernel(const __half* a, const __half* b, __half* out, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) out[i] = __hadd(a[i], b[i]);
}

torch::Tensor scaled(torch::Tensor x, double factor) {
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scaled", [&] {
        scale_kernel<scalar_t><<<(x.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream().stream()>>>(
            x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), static_cast<float>(factor), x.numel());
    });
    return out;
}
torch::Tensor added(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    add_kernel<<<(a.numel() + 255) / 256, 256>>>(
        reinterpret_cast<const __half*>(a.data_ptr<at::Half>()), reinterpret_cast<const __half*>(b.data_ptr<at::Half>()),
        reinterpret_cast<__half*>(out.data_ptr<at::Half>()), a.numel());
    return out;
}
"""
BUILD = {
    "cpp_sources": "torch::Tensor scaled(torch::Tensor x, double factor);\ntorch::Tensor added(torch::Tensor a, torch::Tensor b);",
    "cuda_sources": CUDA, "functions": ["scaled", "added"],
}  # fmt: skip


def check(ext):
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = torch.randn(777, device="cuda").to(dtype)
        assert torch.equal(ext.scaled(x, 0.5), x * 0.5)
    a, b = torch.randn(2, 100, device="cuda").half()
    assert torch.equal(ext.added(a, b), a + b)
