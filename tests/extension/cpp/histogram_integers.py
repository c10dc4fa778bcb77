"""Integers of two dtypes; a tensor on a named device."""

import torch

CPP = r"""
torch::Tensor histogram(torch::Tensor x, int bins) {
    TORCH_CHECK(x.scalar_type() == torch::kInt32, "expected int32 but got ", x.scalar_type());
    auto options = torch::TensorOptions().dtype(torch::kInt64).device(torch::kCPU);
    torch::Tensor counts = torch::zeros(bins, options);
    auto counts_ = counts.accessor<int64_t, 1>();
    for (int64_t i = 0; i < x.numel(); ++i) counts_[x.data_ptr<int32_t>()[i]] += 1;
    return counts;
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["histogram"]}


def check(ext):
    x = torch.randint(0, 10, (1000,), dtype=torch.int32)
    assert torch.equal(ext.histogram(x, 10), torch.bincount(x, minlength=10))
