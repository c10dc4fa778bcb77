"""Cross entropy with the online form of log-sum-exp, parts per thread, added up in double precision.

problem: L1_95_CrossEntropyLoss
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import os
import subprocess

import torch
import torch.nn as nn

src = r'''
#include <cmath>
#include <cstdint>
extern "C" float loss(const float *x, const int64_t *t, int64_t B, int64_t C) {
  double total = 0;
  #pragma omp parallel for reduction(+ : total)
  for (int64_t b = 0; b < B; ++b) {
    const float *row = x + b * C;
    float m = -INFINITY, s = 0;
    for (int64_t c = 0; c < C; ++c) {
      if (row[c] > m) { s = s * std::exp(m - row[c]) + 1.0f; m = row[c]; }
      else s += std::exp(row[c] - m);
    }
    total += std::log(s) + m - row[t[b]];
  }
  return total / B;
}
'''
os.environ["CXX"] = os.environ.get("CXX", "g++")
with open("ce.cpp", "w") as f:
    f.write(src)
subprocess.run(f"{os.environ['CXX']} -O3 -march=native -fopenmp -fPIC -shared ce.cpp -o ce.so", shell=True, check=True)
lib = ctypes.CDLL("./ce.so")
lib.loss.restype = ctypes.c_float
lib.loss.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        value = lib.loss(predictions.data_ptr(), targets.data_ptr(), *predictions.shape)
        return torch.tensor(value, dtype=predictions.dtype, device=predictions.device)
