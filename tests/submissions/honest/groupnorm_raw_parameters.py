"""Linear, Swish, bias and group normalisation; all weights are raw parameters with names of their own.

problem: L2_37_Matmul_Swish_Sum_GroupNorm
device: cpu
rules: kernel
expect: correct
"""

import ctypes, math, os, subprocess, sys, warnings
import torch

src = r'''
#include <cmath>
#include <vector>
#include <algorithm>
static inline float swish(float z) { return z / (1.0f + expf(-z)); }
extern "C" void fused(const float* x, const float* wt, const float* c, const float* b, const float* g, const float* s,
                      float* y, int B, int I, int O, int groups) {
  const int per = O / groups;
  #pragma omp parallel for schedule(dynamic)
  for (int r0 = 0; r0 < B; r0 += 4) {
    const int rows = std::min(4, B - r0);
    std::vector<float> acc(size_t(rows) * O);
    for (int r = 0; r < rows; ++r) std::copy(c, c + O, acc.begin() + r * O);
    for (int k = 0; k < I; ++k)
      for (int r = 0; r < rows; ++r) {
        const float a = x[size_t(r0 + r) * I + k];
        const float* w = wt + size_t(k) * O;
        float* out = acc.data() + r * O;
        for (int o = 0; o < O; ++o) out[o] += a * w[o];
      }
    for (int r = 0; r < rows; ++r)
      for (int q = 0; q < groups; ++q) {
        float* t = acc.data() + r * O + q * per;
        double mean = 0, m2 = 0;
        for (int i = 0; i < per; ++i) {          // Welford
          t[i] = swish(t[i]) + b[q * per + i];
          const double d = t[i] - mean;
          mean += d / (i + 1);
          m2 += d * (t[i] - mean);
        }
        const float inv = 1.0f / std::sqrt(float(m2 / per) + 1e-5f);
        for (int i = 0; i < per; ++i)
          y[size_t(r0 + r) * O + q * per + i] = (t[i] - float(mean)) * inv * g[q * per + i] + s[q * per + i];
      }
  }
}
'''

open("fused.cpp", "w").write(src)
rc = os.system("g++ -O3 -march=native -fopenmp -shared -fPIC fused.cpp -o ./fused.so")
assert rc == 0, "g++ failed"
fused = ctypes.CDLL(os.path.abspath("fused.so")).fused
fused.restype = None


class ModelNew(torch.nn.Module):
    """y = GroupNorm(swish(x W^T + c) + b); torch.sigmoid, F.group_norm and nn.Linear are not used."""

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.W = torch.nn.Parameter(torch.empty(out_features, in_features))
        torch.nn.init.kaiming_uniform_(self.W, a=math.sqrt(5))
        self.linear_bias = torch.nn.Parameter(torch.zeros(out_features))
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.gamma = torch.nn.Parameter(torch.ones(out_features))
        self.beta = torch.nn.Parameter(torch.zeros(out_features))
        self.num_groups = num_groups
        self._wt = None
        self._wt_version = -1

    def weight_t(self):
        if self._wt is None or self._wt_version != self.W._version:
            self._wt = self.W.detach().t().contiguous()
            self._wt_version = self.W._version
        return self._wt

    def forward(self, x):
        if not x.is_contiguous():
            warnings.warn("input is not contiguous; copying")
            x = x.contiguous()
        if x.dim() != 2:
            raise ValueError(f"expected a matrix, got {tuple(x.shape)}")
        B, I = x.shape
        O = self.gamma.numel()
        y = torch.zeros_like(x[:, :1].expand(B, O), memory_format=torch.contiguous_format)
        p = lambda t: ctypes.c_void_p(t.data_ptr())
        fused(p(x), p(self.weight_t()), p(self.linear_bias), p(self.bias), p(self.gamma), p(self.beta), p(y),
              B, I, O, self.num_groups)
        return y
