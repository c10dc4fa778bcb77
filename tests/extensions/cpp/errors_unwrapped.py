"""What functions throw that were bound by hand: pybind11's classes of errors."""

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
    if (kind == 6) TORCH_CHECK_VALUE(false, "of a kind");
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fail", fail); }
"""
BUILD = {"cpp_sources": CPP}


def check(ext):
    x = torch.randn(2)
    for kind, error, text in (
        (0, ValueError, "bad argument"), (1, IndexError, "too far"), (2, OverflowError, "too much"),
        (3, RuntimeError, "failed"), (4, RuntimeError, "checked"),
        (5, RuntimeError, r"Expected \(x\.dim\(\) == 7\) to be true"),
        (6, RuntimeError, r"of a kind\nException raised from fail at .*main\.cpp:14 \(most recent call first\):"),
    ):  # fmt: skip
        with pytest.raises(error, match=f"^{text}") as raised:
            ext.fail(kind, x)
        assert type(raised.value) is error
