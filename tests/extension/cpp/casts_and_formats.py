"""Casts to options, to another tensor and to a device, layouts of memory, and calls of older versions of torch."""

import pytest
import torch

CPP = r"""
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <ATen/OpMathType.h>
#define CHECK_CPU(x) TORCH_CHECK(!x.type().is_cuda(), #x " must be on the CPU")
std::vector<torch::Tensor> cast(torch::Tensor x, torch::Tensor other) {
    CHECK_CPU(x);
    return {x.to(other.dtype()), x.to(other.options()), x.to(other), x.to(other.device()), x.to(torch::kCPU, torch::kHalf),
            x.to(torch::dtype(torch::kInt).device(torch::kCPU)), x.toType(torch::kLong), x.type_as(other), x.cpu(),
            x.to(torch::kFloat, false, true)};
}
std::vector<torch::Tensor> formatted(torch::Tensor x) {
    torch::NoGradGuard guard;
    return {x.contiguous(at::MemoryFormat::ChannelsLast), torch::empty_like(x, at::MemoryFormat::ChannelsLast),
            torch::zeros_like(x, x.options(), at::MemoryFormat::Contiguous),
            at::empty(x.sizes(), x.options().memory_format(at::MemoryFormat::ChannelsLast)),
            at::empty(x.sizes(), x.options(), at::MemoryFormat::ChannelsLast)};
}
torch::Tensor twice() {
    return at::empty({1, 1, 1, 1}, torch::TensorOptions(at::MemoryFormat::ChannelsLast), at::MemoryFormat::Contiguous);
}
torch::Tensor accumulated(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "accumulated", [&] {
        using acc_t = at::acc_type<scalar_t, false>;
        static_assert(sizeof(acc_t) == (sizeof(scalar_t) == 2 ? 4 : 8) && sizeof(at::opmath_type<scalar_t>) >= 4);
        for (int64_t i = 0; i < x.size(0); ++i) {
            acc_t sum = 0;
            for (int64_t j = 0; j < x.size(1); ++j) sum += static_cast<acc_t>(x.data<scalar_t>()[i * x.size(1) + j]);
            y.data<scalar_t>()[i] = static_cast<scalar_t>(sum);
        }
    });
    return y;
}
int64_t indexed(torch::Tensor x) {
    return AT_DISPATCH_INDEX_TYPES(x.scalar_type(), "indexed", [&]() -> int64_t { return x.data_ptr<index_t>()[1]; });
}
bool recording(bool guarded) {
    c10::AutoGradMode mode(!guarded);
    return at::GradMode::is_enabled();
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["cast", "formatted", "twice", "accumulated", "indexed", "recording"]}


def check(ext):
    x, other = torch.randn(2, 3) * 9, torch.zeros(1, dtype=torch.float64)
    f64 = x.double()
    expected = [f64, f64, f64, x, x.half(), x.int(), x.long(), f64, x, x]
    got = ext.cast(x, other)
    assert all(g.dtype == e.dtype and torch.equal(g, e) for g, e in zip(got, expected, strict=True))
    assert got[3] is x and got[8] is x and got[9].data_ptr() != x.data_ptr()
    x = torch.randn(2, 3, 4, 5)
    last, want = x.contiguous(memory_format=torch.channels_last).stride(), ext.formatted(x)
    assert [y.stride() for y in want] == [last, last, x.stride(), last, last] and torch.equal(want[0], x)
    with pytest.raises(RuntimeError, match="Cannot set memory_format both in TensorOptions and explicit argument"):
        ext.twice()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.rand(3, 50).to(dtype)
        torch.testing.assert_close(ext.accumulated(x), x.double().sum(1).to(dtype))
    assert ext.indexed(torch.tensor([3, 4])) == ext.indexed(torch.tensor([3, 4], dtype=torch.int32)) == 4
    with pytest.raises(NotImplementedError, match="^\"indexed\" not implemented for 'Float'$"):
        ext.indexed(torch.zeros(2))
    assert ext.recording(True) is False and ext.recording(False) is True and torch.is_grad_enabled()
