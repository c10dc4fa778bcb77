"""An input changed in place and handed back, and a function without a value."""

import torch

CPP = r"""
torch::Tensor add_(torch::Tensor x, const torch::Tensor& y) {
    TORCH_CHECK(x.sizes() == y.sizes(), "sizes differ");
    for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] += y.data_ptr<float>()[i];
    return x;
}
void clear(torch::Tensor& x) { x.zero_(); }
torch::Tensor pick(torch::Tensor a, torch::Tensor b, bool first) {
    torch::Tensor chosen;
    if (!chosen.defined()) chosen = first ? a : b;
    return chosen;
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["add_", "clear", "pick"]}


def check(ext):
    x, y = torch.randn(8), torch.randn(8)
    expected, place = x + y, x.data_ptr()
    assert ext.add_(x, y) is x and x.data_ptr() == place and torch.equal(x, expected)
    assert ext.clear(x) is None and not x.any()
    assert ext.pick(x, y, True) is x and ext.pick(x, y, 0) is y and ext.pick(x, y, None) is y
