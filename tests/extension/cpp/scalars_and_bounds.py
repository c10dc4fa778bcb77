"""Numbers of any dtype: what they hold, what they become, and where that overflows."""

import pytest
import torch

CPP = r"""
std::vector<double> held(torch::Tensor x) {
    at::Scalar number = x.item(), copy;
    copy = number;
    return {copy.toDouble(), copy.to<float>(), double(copy.to<bool>()), double(copy.isFloatingPoint()),
            double(copy.isIntegral(false)), double(copy.isBoolean())};
}
int64_t whole(torch::Tensor x) { return x.item().toLong(); }
int narrow(torch::Tensor x) { return x.item().to<int>(); }
float single(torch::Tensor x) { return x.item().toFloat(); }
double given(double value) {
    at::Scalar all[] = {value, float(value), int(value), int64_t(value), uint8_t(value), true, 3LL, 4u, at::Scalar()};
    double sum = 0;
    for (const auto& number : all) sum += number.toDouble();
    return sum;
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["held", "whole", "narrow", "single", "given"]}


def check(ext):
    assert ext.held(torch.tensor(2.5)) == [2.5, 2.5, 1, 1, 0, 0] and ext.held(torch.tensor(0)) == [0, 0, 0, 0, 1, 0]
    assert ext.held(torch.tensor(True)) == [1, 1, 1, 0, 0, 1] and ext.held(torch.tensor(-3)) == [-3, -3, 1, 0, 1, 0]
    assert ext.whole(torch.tensor(2**40)) == 2**40 and ext.whole(torch.tensor(-2.7)) == -2
    assert ext.narrow(torch.tensor(-(2**31))) == -(2**31) and ext.narrow(torch.tensor(True)) == 1
    assert ext.single(torch.tensor(torch.inf)) == torch.inf and ext.single(torch.tensor(7)) == 7
    assert ext.single(torch.tensor(torch.nan)) != ext.single(torch.tensor(torch.nan))
    assert ext.given(2.0) == 5 * 2 + 1 + 3 + 4
    f64 = torch.float64
    for call, value, name in (
        (ext.narrow, torch.tensor(2**31), "int"), (ext.narrow, torch.tensor(2.0**31, dtype=f64), "int"),
        (ext.narrow, torch.tensor(torch.nan), "int"), (ext.whole, torch.tensor(torch.inf), "int64_t"),
        (ext.whole, torch.tensor(1e19, dtype=f64), "int64_t"), (ext.single, torch.tensor(-1e39, dtype=f64), "float"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"^value cannot be converted to type {name} without overflow$"):
            call(value)
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        ext.whole(torch.zeros(2))
