"""16-bit floats, in arithmetic and through AT_DISPATCH."""

import torch

CPP = r"""
torch::Tensor twice(torch::Tensor x) {
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "twice", ([&] {
        for (int64_t i = 0; i < x.numel(); ++i) {
            scalar_t value = x.data_ptr<scalar_t>()[i];
            y.data_ptr<scalar_t>()[i] = value + value;
        }
    }));
    return y;
}
double first(torch::Tensor x) { return static_cast<float>(x.data_ptr<at::Half>()[0]); }
"""
BUILD = {"cpp_sources": CPP, "functions": ["twice", "first"]}


def check(ext):
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        x = torch.randn(50).to(dtype)
        assert torch.equal(ext.twice(x), x + x)
    assert ext.first(torch.tensor([0.1], dtype=torch.float16)) == float(torch.tensor(0.1, dtype=torch.float16))
