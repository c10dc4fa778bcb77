"""Matrix product into zeros with the options of an input."""

import torch

CPP = r"""
#include <torch/extension.h>
#include <vector>

at::Tensor matmul(at::Tensor a, at::Tensor b) {
    TORCH_CHECK(a.size(1) == b.size(0), "shapes do not match: ", a.sizes(), " and ", b.sizes());
    TORCH_CHECK(a.scalar_type() == at::kFloat && b.dtype() == torch::kFloat32);
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    at::Tensor c = torch::zeros({m, n}, a.options());
    for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                c.data_ptr<float>()[i * n + j] += a.data_ptr<float>()[i * k + p] * b.data_ptr<float>()[p * n + j];
    return c;
}
"""
BUILD = {"cpp_sources": [CPP], "functions": "matmul", "extra_cflags": ["-O2"]}


def check(ext):
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    torch.testing.assert_close(ext.matmul(a, b), a @ b)
