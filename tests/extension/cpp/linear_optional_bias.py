"""An optional tensor and an optional number, given or None."""

import torch

CPP = r"""
#include <torch/extension.h>
#include <optional>

torch::Tensor linear(torch::Tensor x, torch::Tensor w, std::optional<torch::Tensor> bias, torch::optional<double> scale) {
    auto y = torch::zeros({x.size(0), w.size(0)}, torch::TensorOptions().dtype(x.dtype()).device(x.device()).requires_grad(false));
    const auto xs = x.accessor<float, 2>(), ws = w.accessor<float, 2>();
    auto ys = y.accessor<float, 2>();
    for (int64_t i = 0; i < ys.size(0); ++i)
        for (int64_t j = 0; j < ys.size(1); ++j) {
            if (bias.has_value() && bias->defined()) ys[i][j] = bias.value().data_ptr<float>()[j];
            for (int64_t k = 0; k < xs.size(1); ++k) ys[i][j] += xs[i][k] * ws[j][k];
            ys[i][j] *= scale.value_or(1.0);
        }
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("linear", &linear, py::arg("x"), py::arg("w"), py::arg("bias") = py::none(), py::arg("scale") = py::none());
}
"""
BUILD = {"cpp_sources": CPP}


def check(ext):
    x, w, bias = torch.randn(6, 4).t(), torch.randn(3, 6), torch.randn(3)
    torch.testing.assert_close(ext.linear(x, w, bias), torch.nn.functional.linear(x, w, bias))
    torch.testing.assert_close(ext.linear(x, w, None, 2), torch.nn.functional.linear(x, w) * 2)
    torch.testing.assert_close(ext.linear(x, w, scale=3.0), torch.nn.functional.linear(x, w) * 3)
