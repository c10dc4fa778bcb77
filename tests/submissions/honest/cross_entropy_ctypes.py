"""Cross entropy in C++: integer and floating-point inputs, and a scalar output of shape ().

problem: L1_95_CrossEntropyLoss
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cmath>

extern "C" void cross_entropy(const float* x, const long* target, float* loss, long rows, long columns) {
    double total = 0;
    for (long row = 0; row < rows; ++row, x += columns) {
        float most = x[0];
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        double sum = 0;
        for (long i = 0; i < columns; ++i) sum += std::exp(x[i] - most);
        total += std::log(sum) + most - x[target[row]];
    }
    *loss = static_cast<float>(total / rows);
}
"""

with open("loss.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC loss.cpp -o libloss.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./libloss.so")
lib.cross_entropy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = torch.empty((), dtype=torch.float32)
        rows, columns = predictions.shape
        lib.cross_entropy(predictions.data_ptr(), targets.data_ptr(), loss.data_ptr(), rows, columns)
        return loss
