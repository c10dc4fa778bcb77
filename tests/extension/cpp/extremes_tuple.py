"""A tuple of tensors and numbers returned."""

import torch

CPP = r"""
#include <tuple>
std::tuple<at::Tensor, at::Tensor, int64_t, double> extremes(const at::Tensor& x) {
    auto values = at::empty({2}, x.options());
    auto places = at::empty({2}, x.options().dtype(at::kLong));
    double sum = 0;
    int64_t low = 0, high = 0;
    const float* in = x.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        if (in[i] < in[low]) low = i;
        if (in[i] > in[high]) high = i;
        sum += in[i];
    }
    values.data_ptr<float>()[0] = in[low], values.data_ptr<float>()[1] = in[high];
    places.data_ptr<int64_t>()[0] = low, places.data_ptr<int64_t>()[1] = high;
    return std::make_tuple(values, places, x.numel(), sum);
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["extremes"]}


def check(ext):
    x = torch.randn(100)
    values, places, count, total = ext.extremes(x)
    assert values.tolist() == [x.min(), x.max()] and places.tolist() == [x.argmin(), x.argmax()]
    assert (count, type(count), type(total)) == (100, int, float) and abs(total - x.double().sum()) < 1e-4
