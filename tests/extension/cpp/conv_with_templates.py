"""A convolution in a class template with a helper namespace."""

import torch

CPP = r"""
#include <torch/torch.h>
#include <array>
#include <numeric>

namespace detail {
template <typename T, int N>
struct Window {
    std::array<T, N> values{};
    T dot(const T* in) const { return std::inner_product(values.begin(), values.end(), in, T(0)); }
};
}

torch::Tensor convolve(torch::Tensor x, torch::Tensor w) {
    TORCH_CHECK(w.numel() == 3 and x.dim() == 1 && x.size(0) >= 3, "bad shapes ", x.sizes(), w.sizes());
    detail::Window<float, 3> window;
    std::copy(w.data_ptr<float>(), w.data_ptr<float>() + 3, window.values.begin());
    auto y = torch::empty({x.size(0) - 2}, x.options());
    for (int64_t i = 0; i < y.numel(); ++i) y.mutable_data_ptr<float>()[i] = window.dot(x.const_data_ptr<float>() + i);
    return y;
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["convolve"]}


def check(ext):
    x, w = torch.randn(20), torch.randn(3)
    torch.testing.assert_close(ext.convolve(x, w), torch.conv1d(x[None, None], w[None, None])[0, 0])
