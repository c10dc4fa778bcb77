"""The binding inside the CUDA source, with an empty C++ one."""

import torch

CUDA = r"""
#include <torch/extension.h>
__global__ void cube_kernel(const double* in, double* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] * in[i] * in[i];
}
torch::Tensor cube(const torch::Tensor& x) {
    auto y = torch::empty(x.sizes(), x.options());
    cube_kernel<<<8, 128>>>(x.data_ptr<double>(), y.data_ptr<double>(), x.numel());
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("cube", &cube, "x cubed", py::arg("x"));
}
"""
BUILD = {"cpp_sources": "", "cuda_sources": CUDA}


def check(ext):
    x = torch.randn(999, dtype=torch.float64, device="cuda")
    assert torch.equal(ext.cube(x=x), x * x * x)
