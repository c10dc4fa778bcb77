"""Sizes, dtypes and devices in the texts of streams, and names of the C++ library whose headers nobody includes."""

import torch

CPP = r"""
#include <torch/extension.h>
#include <sstream>
std::string described(torch::Tensor x) {
    std::ostringstream text;
    text << x.sizes() << ' ' << x.dtype() << ' ' << x.scalar_type() << ' ' << x.device() << ' ' << x.device().type() << ' '
         << torch::IntArrayRef({}) << at::ArrayRef<double>({0.5, 1e10}) << ' ' << at::MemoryFormat::Contiguous;
    return text.str();
}
int64_t borrowed(torch::Tensor x) {
    std::list<int64_t> sizes(x.sizes().begin(), x.sizes().end());
    std::bitset<8> bits(x.dim());
    std::stack<int> stack;
    std::variant<int, double> either = 0.5;
    auto copied = x.sizes().vec();
    assert(copied.size() <= INT_MAX);
    std::vector<int64_t> sums(copied.size());
    std::inclusive_scan(copied.begin(), copied.end(), sums.begin());
    return sums.back() + sizes.size() + bits.count() + stack.size() + either.index() + std::popcount(3u);
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["described", "borrowed"]}


def check(ext):
    x = torch.zeros(2, 3, dtype=torch.float16)
    assert ext.described(x) == "[2, 3] c10::Half Half cpu cpu [][0.5, 1e+10] Contiguous"
    assert ext.borrowed(x) == 5 + 2 + 1 + 0 + 1 + 2
