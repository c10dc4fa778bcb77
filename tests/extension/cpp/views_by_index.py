"""Views by index and by range, read from and assigned to."""

import pytest
import torch

CPP = r"""
#include <torch/extension.h>
std::vector<torch::Tensor> views(torch::Tensor x) {
    auto halves = x.chunk(2, -1);
    auto parts = x.split(3, 1);
    auto rows = x.unbind(0);
    return {x[1], x[-1][2], x.select(1, 3), x.narrow(-1, 1, 2), x.slice(1, 1, 4, 2), x.slice(0, -1),
            x.slice(1, std::nullopt, -1), halves[1], parts.back(), rows.at(1), x.movedim(0, 1), x.unfold(1, 2, 1),
            x[0].expand({2, x.size(1)}), x[0].expand_as(x), x.flatten().view_as(x), x.t().reshape_as(x)};
}
void assigned(torch::Tensor out, torch::Tensor row) {
    out[0] = 2;
    out[1] = row;
    out[2][1] = row[0].item<float>() + 0.5;
    out[2][2] = row[1];
    out.select(1, 3).fill_(row[2].item());
    out.view({-1}).slice(0, 0, 1) = torch::full({1}, 9.0);
    auto last = out[3];
    last = row;
}
torch::Tensor summed(torch::Tensor x) {
    auto sums = torch::zeros({x.size(0)}, x.options());
    for (int i = 0; i < x.size(0); ++i) {
        float sum = 0;
        for (size_t j = 0; j < x[i].sizes()[0]; ++j) sum += x[i][j].item().toFloat();
        sums[i] = sum;
    }
    return sums;
}
torch::Tensor beyond(torch::Tensor x) { return x[5]; }
"""
BUILD = {"cpp_sources": CPP, "functions": ["views", "assigned", "summed", "beyond"]}


def check(ext):
    x = torch.randn(2, 6)
    expected = [
        x[1], x[-1][2], x[:, 3], x[:, 1:3], x[:, 1:4:2], x[-1:], x[:, :-1], x[:, 3:], x[:, 3:], x[1], x.movedim(0, 1),
        x.unfold(1, 2, 1), x[0].expand(2, 6), x[0].expand(2, 6), x, x.t().reshape(2, 6),
    ]  # fmt: skip
    for number, (got, want) in enumerate(zip(ext.views(x), expected, strict=True)):
        assert got.shape == want.shape and got.stride() == want.stride() and torch.equal(got, want), number
    out, row = torch.zeros(4, 4), torch.randn(4)
    want = out.clone()
    want[0], want[1], want[2, 1], want[2, 2], want[:, 3], want[0, 0] = 2, row, row[0] + 0.5, row[1], row[2], 9
    ext.assigned(out, row)
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(ext.summed(x), x.sum(1))
    with pytest.raises(IndexError, match=r"index 5 out of range|select\(\): index 5"):
        ext.beyond(x)
