"""A buffer kept between calls, numbers read out of tensors, sources in several strings."""

import pytest
import torch

FIRST = r"""
#include <map>
static std::map<int64_t, torch::Tensor> buffers;
torch::Tensor buffer(int64_t size) {
    auto found = buffers.find(size);
    if (found == buffers.end()) found = buffers.emplace(size, torch::empty({size}, torch::kFloat)).first;
    return found->second;
}
"""
SECOND = r"""
double largest(torch::Tensor x) {
    double most = -INFINITY;
    for (int64_t i = 0; i < x.numel(); ++i) most = std::max<double>(most, x.data_ptr<float>()[i]);
    return most;
}
float item(torch::Tensor x) { return x.item<float>(); }
int64_t count(const std::vector<torch::Tensor>& all) { return all.size(); }
float absolute(float x) { return abs(x); }
"""
BUILD = {"cpp_sources": [FIRST, SECOND], "functions": ["buffer", "largest", "item", "count", "absolute"]}


def check(ext):
    assert ext.buffer(5) is ext.buffer(5) and ext.buffer(5).shape == (5,) and ext.buffer(6) is not ext.buffer(5)
    assert ext.largest(torch.tensor([-3.0, -2.0])) == -2 and ext.item(torch.tensor([2.5])) == 2.5
    assert ext.count([]) == 0 and ext.count({torch.zeros(3)}) == 1 and ext.absolute(-0.75) == 0.75
    with pytest.raises(TypeError):
        ext.count(torch.zeros(3, 2))
