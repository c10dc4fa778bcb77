"""Builds an extension that hands its product to the vendor's library.

problem: matmul.py
device: any
rules: kernel
expect: rules/torch_compute
"""

from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

SOURCE = r"""
#include <torch/extension.h>

extern "C" void sgemm_(
    const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
    const float*, const int*, const float*, float*, const int*);

torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const float one = 1, zero = 0;
  auto out = torch::empty({rows, columns}, a.options());
  sgemm_("N", "N", &columns, &rows, &inner, &one, b.data_ptr<float>(), &columns, a.data_ptr<float>(), &inner, &zero,
         out.data_ptr<float>(), &columns);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""
Path("product.cpp").write_text(SOURCE)
extension = load("product", ["product.cpp"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.product(A, B)
