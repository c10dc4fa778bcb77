"""Lists of numbers taken and given."""

import torch

CPP = r"""
#include <string>
std::vector<int64_t> shape_of(torch::Tensor x) { return x.sizes().vec(); }
torch::Tensor reshaped(torch::Tensor x, std::vector<int64_t> sizes) { return x.reshape(sizes); }
torch::Tensor joined(std::vector<torch::Tensor> parts, const std::vector<double>& scales) {
    int64_t total = 0;
    for (const auto& part : parts) total += part.numel();
    auto out = torch::empty({total}, parts[0].options());
    int64_t at = 0;
    for (size_t p = 0; p < parts.size(); ++p)
        for (int64_t i = 0; i < parts[p].numel(); ++i) out.data_ptr<float>()[at++] = parts[p].data_ptr<float>()[i] * scales[p];
    return out;
}
std::string name_of(torch::Tensor x, std::string prefix) { return prefix + std::to_string(x.dim()); }
"""
BUILD = {"cpp_sources": CPP, "functions": ["shape_of", "reshaped", "joined", "name_of"]}


def check(ext):
    x, y = torch.randn(4, 6), torch.randn(5)
    assert ext.shape_of(x) == [4, 6]
    assert torch.equal(ext.reshaped(x, (3, -1)), x.reshape(3, 8))
    torch.testing.assert_close(ext.joined([x, y], (2, 0.5)), torch.cat([x.flatten() * 2, y * 0.5]))
    assert torch.equal(ext.joined(list(x), range(4)), (x * torch.arange(4)[:, None]).flatten())
    assert torch.equal(ext.joined((part for part in (x, y)), [1, 1]), torch.cat([x.flatten(), y]))
    assert ext.name_of(x, "d") == "d2" and ext.name_of(x, b"d") == "d2"
