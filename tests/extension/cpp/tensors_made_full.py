"""Tensors of one value, of one number and of a list, and those that take their options from another."""

import pytest
import torch

CPP = r"""
#include <limits>
using torch::Tensor;
std::vector<Tensor> made(Tensor x) {
    const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(x.device()).layout(torch::kStrided);
    return {
        torch::full({2, 3}, 1.5), torch::full({2}, 7), torch::full({2}, true), torch::full({2}, 2, torch::kHalf),
        torch::full({x.size(0)}, -std::numeric_limits<float>::infinity(), x.options()), torch::full_like(x, 3),
        torch::full_like(x, 0.5, options), x.new_empty({0, 4}), x.new_zeros({2, 2}), x.new_ones(x.sizes(), torch::kLong),
        x.new_full({3}, 2.5), x.new_zeros(5, options), at::empty_strided({2, 3}, {1, 2}, x.options()).zero_(),
        torch::tensor(1.5), torch::tensor(2), torch::tensor(true), torch::tensor(3, options), torch::tensor({1.5, 2.5}),
        torch::tensor({1, 2, 3}), torch::tensor({4.f}, torch::dtype(torch::kInt)), torch::scalar_tensor(2.5, options),
        at::scalar_tensor(3), torch::zeros({}), torch::ones({1}).fill_(x.numel())};
}
Tensor overflowing() { return torch::full({1}, 300, torch::kUInt8); }
"""
BUILD = {"cpp_sources": CPP, "functions": ["made", "overflowing"]}


def check(ext):
    x = torch.randn(3, 2)
    f64 = {"dtype": torch.float64}
    expected = [
        torch.full((2, 3), 1.5), torch.full((2,), 7), torch.full((2,), True), torch.full((2,), 2, dtype=torch.half),
        torch.full((3,), -torch.inf), torch.full_like(x, 3), torch.full_like(x, 0.5, **f64), x.new_empty(0, 4),
        x.new_zeros(2, 2), x.new_ones(3, 2, dtype=torch.long), x.new_full((3,), 2.5), x.new_zeros(5, **f64),
        torch.zeros(3, 2).t(), torch.tensor(1.5), torch.tensor(2), torch.tensor(True), torch.tensor(3, **f64),
        torch.tensor([1.5, 2.5]), torch.tensor([1, 2, 3]), torch.tensor([4], dtype=torch.int), torch.tensor(2.5, **f64),
        torch.tensor(3.0), torch.zeros(()), torch.tensor([6.0]),
    ]  # fmt: skip
    for number, (got, want) in enumerate(zip(ext.made(x), expected, strict=True)):
        assert got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want), number
        assert got.stride() == want.stride(), number
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        ext.overflowing()
