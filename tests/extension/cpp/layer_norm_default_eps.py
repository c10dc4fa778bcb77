"""LayerNorm bound by hand, with named arguments and a default."""

import torch

CPP = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
    auto input = x.contiguous();
    auto output = torch::empty_like(input);
    const int64_t width = input.size(-1), rows = input.numel() / width;
    const float* w = weight.data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = input.data_ptr<float>() + r * width;
        float* out = output.data_ptr<float>() + r * width;
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < width; ++i) mean += in[i];
        mean /= width;
        for (int64_t i = 0; i < width; ++i) squares += (in[i] - mean) * (in[i] - mean);
        const double scale = 1.0 / sqrt(squares / width + eps);
        for (int64_t i = 0; i < width; ++i) out[i] = (in[i] - mean) * scale * w[i];
    }
    return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "LayerNorm";
    m.def("layer_norm", &layer_norm, "LayerNorm over the last dimension",
          py::arg("x"), py::arg("weight"), py::arg("eps") = 1e-5);
}
"""
BUILD = {"cpp_sources": CPP}


def check(ext):
    x, weight = torch.randn(3, 16, 5).transpose(1, 2), torch.randn(16)
    torch.testing.assert_close(ext.layer_norm(x, weight=weight), torch.layer_norm(x, (16,), weight))
    torch.testing.assert_close(ext.layer_norm(x, weight, 1), torch.layer_norm(x, (16,), weight, eps=1.0))
    assert ext.__doc__ == "LayerNorm"
    signature, _, doc = ext.layer_norm.__doc__.partition("\n\n")
    assert signature.startswith("layer_norm(x: torch.Tensor, weight: torch.Tensor, eps: ")
    assert signature.endswith(" = 1e-05) -> torch.Tensor") and doc == "LayerNorm over the last dimension\n"
