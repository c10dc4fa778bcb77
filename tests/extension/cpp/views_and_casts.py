"""Views, casts and copies, all by torch itself."""

import torch

CPP = r"""
std::vector<torch::Tensor> views(torch::Tensor x) {
    auto copy = x.clone();
    copy.copy_(x.to(torch::kFloat64));
    return {x.transpose(0, 1), x.permute({1, 0}).contiguous(), x.view({-1}), x.unsqueeze(0).squeeze(0), x.flatten(),
            x.to(torch::kInt32), x.t().reshape({2, -1}), copy, x.detach(), torch::ones({2, 2}), torch::ones_like(x)};
}
std::vector<int64_t> facts(torch::Tensor x) {
    return {x.is_contiguous(), x.is_cuda(), x.element_size(), static_cast<int64_t>(x.nbytes()), x.storage_offset(),
            x.ndimension(), x.get_device(), x.device() == torch::kCPU, x.device().is_cpu(), x.is_same(x)};
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["views", "facts"]}


def check(ext):
    x = torch.randn(4, 6)
    expected = [
        x.t(), x.t().contiguous(), x.view(-1), x, x.flatten(), x.to(torch.int32), x.t().reshape(2, -1), x, x,
        torch.ones(2, 2), torch.ones_like(x),
    ]  # fmt: skip
    for found, wanted in zip(ext.views(x), expected, strict=True):
        assert found.dtype == wanted.dtype and found.stride() == wanted.stride() and torch.equal(found, wanted)
    assert ext.facts(x[1:].t()) == [0, 0, 4, 72, 6, 2, -1, 1, 1, 1]
