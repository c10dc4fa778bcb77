"""A lambda for float and double by AT_DISPATCH_FLOATING_TYPES."""

import pytest
import torch

CPP = r"""
torch::Tensor scale(torch::Tensor x, float factor) {
    auto y = torch::empty(x.sizes(), x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
        const scalar_t* in = x.data_ptr<scalar_t>();
        scalar_t* out = y.data_ptr<scalar_t>();
        for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] * static_cast<scalar_t>(factor);
    });
    return y;
}
"""
BUILD = {"cpp_sources": CPP, "functions": {"scale": "multiplies by a factor"}}


def check(ext):
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(4, 5, dtype=dtype)
        assert torch.equal(ext.scale(x, 0.5), x * 0.5)
    with pytest.raises(NotImplementedError, match="^\"scale\" not implemented for 'Int'$"):
        ext.scale(torch.ones(3, dtype=torch.int32), 1)
