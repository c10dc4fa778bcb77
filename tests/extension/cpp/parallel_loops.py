"""torch's own parallel loops, with OpenMP: numbers of threads, a grain, a reduction, an error from inside."""

import pytest
import torch

CPP = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <c10/util/irange.h>
#include <stdexcept>

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    at::parallel_for(0, x.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
        for (const auto i : c10::irange(begin, end)) out[i] = std::max(in[i], 0.f);
    });
    return y;
}
double total(torch::Tensor x, int64_t grain) {
    const float* in = x.data_ptr<float>();
    return at::parallel_reduce(0, x.numel(), grain, 0.0, [&](int64_t begin, int64_t end, double sum) {
        for (int64_t i = begin; i < end; ++i) sum += in[i];
        return sum;
    }, [](double a, double b) { return a + b; });
}
std::vector<int64_t> pieces(int64_t count, int64_t grain) {
    std::vector<int64_t> of(at::get_num_threads() + 1);
    at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
        of[at::get_thread_num()] += end - begin;
        if (c10::ParallelGuard::is_enabled()) of.back() = 1;
    });
    return of;
}
void fail() {
    at::parallel_for(0, 100, 1, [](int64_t begin, int64_t) { if (begin == 0) throw std::runtime_error("inside"); });
}
"""
FUNCTIONS = ["relu", "total", "pieces", "fail"]
BUILD = {"cpp_sources": CPP, "functions": FUNCTIONS, "extra_cflags": ["-fopenmp"], "extra_ldflags": ["-fopenmp"]}


def check(ext):
    x, threads = torch.randn(100_000), torch.get_num_threads()
    assert torch.equal(ext.relu(x), x.relu())
    for grain in (0, 1000, 1_000_000):
        assert ext.total(x, grain) == pytest.approx(x.double().sum().item(), abs=1e-6)
    share = -(-100 // threads)
    expected = [max(min(share, 100 - share * i), 0) for i in range(threads)] if threads > 1 else [100]
    assert ext.pieces(100, 1) == [*expected, 1] and ext.pieces(100, 100) == [100, *[0] * (threads - 1), 1]
    assert ext.pieces(0, 1) == [0] * (threads + 1) and ext.total(x[:0], 1) == 0
    with pytest.raises(RuntimeError, match=r"^inside$"):
        ext.fail()
    with pytest.raises(RuntimeError, match="Expected grain_size >= 0 to be true"):
        ext.total(x, -1)
