"""What functions throw that were bound by hand: pybind11's classes of errors, and torch's for its own."""

import pytest
import torch

CPP = r"""
#include <torch/extension.h>
#include <stdexcept>
#define ALWAYS_FALSE (x.dim() == 7)

void fail(int kind, torch::Tensor x) {
    if (kind == 0) throw std::invalid_argument("bad argument");
    if (kind == 1) throw std::out_of_range("too far");
    if (kind == 2) throw std::overflow_error("too much");
    if (kind == 3) throw std::runtime_error("failed");
    if (kind == 4) TORCH_CHECK(false, "checked");
    if (kind == 5) TORCH_CHECK(ALWAYS_FALSE);
    TORCH_CHECK_VALUE(kind != 6, "of a kind");
    TORCH_CHECK_TYPE(kind != 7, "of a type");
    TORCH_CHECK_INDEX(kind != 8, "of a place");
    if (kind == 9) AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "op", [] {});
    if (kind == 10) x.size(9);
    if (kind == 11) x.view({3});
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fail", fail); }
"""
BUILD = {"cpp_sources": CPP}


def check(ext):
    x = torch.randn(2)
    for kind, error, text in (
        (0, ValueError, "bad argument"), (1, IndexError, "too far"), (2, OverflowError, "too much"),
        (3, RuntimeError, "failed"), (4, RuntimeError, "checked"),
        (5, RuntimeError, r"Expected \(x\.dim\(\) == 7\) to be true, but got false\..*"),
        (6, ValueError, "of a kind"), (7, TypeError, "of a type"), (8, IndexError, "of a place"),
        (9, NotImplementedError, "\"op\" not implemented for 'Float'"), (10, IndexError, r"Dimension out of range \(.*"),
        (11, RuntimeError, r"shape '\[3\]' is invalid for input of size 2"),
    ):  # fmt: skip
        with pytest.raises(error, match=f"^{text}$") as raised:
            ext.fail(kind, x)
        assert type(raised.value) is error
