"""What functions throw, through load_inline's wrapper."""

import pytest
import torch

CPP = r"""
#include <stdexcept>
int fail(int kind, torch::Tensor x) {
    switch (kind) {
        case 0: TORCH_CHECK(x.dim() == 1, "dim ", x.dim(), " of ", x.sizes(), ' ', 0.5f, " ", true, x.scalar_type(), x.device());
        case 1: TORCH_CHECK(x.numel() < 0);
        case 2: throw std::invalid_argument("bad argument");
        case 3: throw std::out_of_range("too far");
        case 4: AT_ERROR("number ", 7);
        case 5: TORCH_INTERNAL_ASSERT(x.numel() < 0, "never");
        case 6: return x.size(5);
        case 7: x.data_ptr<int>(); return 0;
        case 8: x.view({5, 5}); return 0;
        case 9: return x.stride(-3);
        case 10: torch::empty({-1}); return 0;
        case 11: throw 7;
        default: return kind;
    }
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["fail"]}
EXPECTED = [
    (RuntimeError, r"dim 2 of \[2, 3\] 0\.5 1Floatcpu"),
    (RuntimeError, r"Expected x\.numel\(\) < 0 to be true, but got false\.  \(Could this error message be improved\?  If so, "
     r"please report an enhancement request to PyTorch\.\)"),
    (RuntimeError, "bad argument"),
    (RuntimeError, "too far"),
    (RuntimeError, "number 7"),
    (RuntimeError, r"x\.numel\(\) < 0 INTERNAL ASSERT FAILED at \".*\.cpp\":11, please report a bug to PyTorch\. never"),
    (IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"),
    (RuntimeError, "expected scalar type Int but found Float"),
    (RuntimeError, r"shape '\[5, 5\]' is invalid for input of size 6"),
    (IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got -3\)"),
    (RuntimeError, r"Trying to create tensor with negative dimension -1: \[-1\]"),
    (RuntimeError, "Caught an unknown exception!"),
]  # fmt: skip


def check(ext):
    x = torch.randn(2, 3)
    for kind, (error, text) in enumerate(EXPECTED):
        with pytest.raises(error) as raised:
            ext.fail(kind, x)
        assert type(raised.value) is error
        raised.match(f"^{text}$")
    assert ext.fail(99, x) == 99
    with pytest.raises(
        TypeError, match=r"^fail\(\): incompatible function arguments.*\n    1\. \(arg0: typing\.Supports"
    ):
        ext.fail(0, None)
