"""Addresses as integers, bound by pybind11 alone: what our prompts recommend."""

import torch

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void squared_difference(int64_t a, int64_t b, int64_t out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const float difference = reinterpret_cast<const float*>(a)[i] - reinterpret_cast<const float*>(b)[i];
        reinterpret_cast<float*>(out)[i] = difference * difference;
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("squared_difference", &squared_difference); }
"""
BUILD = {"cpp_sources": CPP, "no_implicit_headers": True, "extra_cflags": ["-O3", "-march=native"]}


def check(ext):
    a, b, out = torch.randn(3, 50)
    ext.squared_difference(a.data_ptr(), b.data_ptr(), out.data_ptr(), 50)
    assert torch.equal(out, (a - b) ** 2)
