"""A matrix product of halves by wmma, for an architecture that the source names itself."""

import torch

CUDA = r"""
#include <torch/extension.h>
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;

__global__ void wmma_kernel(const half* a, const half* b, float* c, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + i * n + column, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    TORCH_CHECK(m % 16 == 0 && n % 16 == 0 && k % 16 == 0, "multiples of 16, not ", m, "x", n, "x", k);
    auto c = torch::empty({m, n}, a.options().dtype(torch::kFloat));
    wmma_kernel<<<dim3(n / 16, m / 16), 32>>>(
        (const half*)a.data_ptr<at::Half>(), (const half*)b.data_ptr<at::Half>(), c.data_ptr<float>(), n, k);
    return c;
}
"""
BUILD = {
    "cpp_sources": "torch::Tensor product(torch::Tensor a, torch::Tensor b);", "cuda_sources": CUDA,
    "functions": ["product"], "extra_cuda_cflags": ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"],
}  # fmt: skip


def check(ext):
    a, b = torch.randn(32, 64, device="cuda").half(), torch.randn(64, 48, device="cuda").half()
    torch.testing.assert_close(ext.product(a, b), (a.float() @ b.float()), atol=1e-2, rtol=1e-2)
