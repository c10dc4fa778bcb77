"""Pairs and nested results, lists of sizes as arguments, defaults of text, of None and of a list, constants of the module."""

import pytest
import torch

CPP = r"""
#include <torch/extension.h>
#include <string>
#include <utility>

std::pair<torch::Tensor, torch::Tensor> extremes(torch::Tensor x) {
    auto ends = std::minmax_element(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    return {torch::tensor(*ends.first), torch::tensor(*ends.second)};
}
std::vector<std::pair<int64_t, double>> ranked(std::vector<double> values) {
    std::vector<std::pair<int64_t, double>> all;
    for (size_t i = 0; i < values.size(); ++i) all.emplace_back(i, values[i]);
    return all;
}
torch::Tensor shaped(torch::Tensor x, at::IntArrayRef sizes, c10::optional<torch::Tensor> bias, const std::string& mode,
                     std::vector<int64_t> pads) {
    TORCH_CHECK(mode == "plain" || mode == "flat", "unknown mode: ", mode);
    if (bias.has_value()) x = bias.value();
    if (!pads.empty()) return torch::zeros(pads, x.options());
    return mode == "flat" ? x.reshape({-1}) : x.reshape(sizes);
}
at::IntArrayRef sizes_of(const torch::Tensor& x) { return x.sizes(); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "many ways";
    m.attr("VERSION") = "1.0";
    m.attr("WIDTH") = 8;
    m.def("extremes", &extremes, "Smallest and largest");
    m.def("ranked", &ranked);
    m.def("sizes_of", &sizes_of);
    m.def("shaped", &shaped, py::arg("x"), py::arg("sizes"), py::arg("bias") = c10::nullopt, py::arg("mode") = "plain",
          py::arg("pads") = std::vector<int64_t>{});
}
"""
BUILD = {"cpp_sources": CPP}


def check(ext):
    x = torch.randn(4, 6)
    low, high = pair = ext.extremes(x)
    assert type(pair) is tuple and low.item() == x.min() and high.item() == x.max() and low.shape == ()
    assert ext.ranked([0.5, 2]) == [(0, 0.5), (1, 2.0)] and ext.sizes_of(x) == (4, 6)
    assert (ext.__doc__, ext.VERSION, ext.WIDTH) == ("many ways", "1.0", 8)
    assert ext.shaped(x, (2, 12)).shape == ext.shaped(x, [2, 12], None).shape == ext.shaped(x, x.view(2, 12).shape).shape
    assert ext.shaped(x, [], mode="flat").shape == (24,) and ext.shaped(x, [3], torch.zeros(3)).shape == (3,)
    assert ext.shaped(x, [], pads=[5]).shape == (5,)
    signature = ext.shaped.__doc__
    assert "bias: torch.Tensor | None = None, mode: str = 'plain'" in signature and "sizes: Tuple[int, ...]" in signature
    assert "-> tuple[torch.Tensor, torch.Tensor]" in ext.extremes.__doc__
    for wrong in ("abc", 3, None):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.shaped(x, wrong)
    with pytest.raises(RuntimeError, match="unknown mode: other"):
        ext.shaped(x, [24], mode="other")
