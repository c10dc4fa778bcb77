"""A fold with an optional bias: torch::full, new_empty, views by index, types to accumulate in, a pair as the result."""

import torch

CPP = "std::pair<torch::Tensor, torch::Tensor> fold(torch::Tensor x, c10::optional<torch::Tensor> bias, double start);"
CUDA = r"""
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be on a GPU, not on ", x.device(), " as ", x.dtype())

template <typename scalar_t>
__global__ void fold_kernel(const scalar_t* x, const scalar_t* bias, float* out, int64_t columns) {
    using acc_t = at::acc_type<scalar_t, true>;
    acc_t sum = 0;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) sum += static_cast<acc_t>(x[blockIdx.x * columns + i]);
    if (threadIdx.x == 0 && bias) sum += static_cast<acc_t>(bias[blockIdx.x]);
    atomicAdd(out + blockIdx.x, static_cast<float>(sum));
}

std::pair<torch::Tensor, torch::Tensor> fold(torch::Tensor x, c10::optional<torch::Tensor> bias, double start) {
    CHECK_CUDA(x);
    const c10::cuda::OptionalCUDAGuard guard(at::device_of(x));
    auto out = torch::full({x.size(0)}, start, x.options().dtype(torch::kFloat32));
    auto count = x.new_empty({x.size(0)}, torch::kLong);
    count.fill_(x.size(1));
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "fold", [&] {
        const scalar_t* added = bias.has_value() ? bias->data_ptr<scalar_t>() : nullptr;
        fold_kernel<scalar_t><<<x.size(0), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), added, out.data_ptr<float>(), x.size(1));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    out[0] = out[0].item<float>() * 2;
    return {out, count};
}
"""
BUILD = {"cpp_sources": CPP, "cuda_sources": CUDA, "functions": ["fold"]}


def check(ext):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, bias = torch.randn(4, 300, device="cuda").to(dtype), torch.randn(4, device="cuda").to(dtype)
        for added, extra in ((bias, bias.float()), (None, 0)):
            sums, count = ext.fold(x, added, 0.5)
            expected = x.float().sum(1) + extra + 0.5
            expected[0] *= 2
            torch.testing.assert_close(sums, expected, rtol=1e-3, atol=1e-3)
            assert count.tolist() == [300] * 4
