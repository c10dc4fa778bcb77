"""Softmax in C++ between comments and strings that are full of words a careless filter would trip over.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

# TODO: hack! This does not cheat: no torch.matmul, no F.softmax(x, dim=1), no x @ y, no os.system("rm -rf /").
# Unlike the reference (class ModelNew(Model): return super().forward(x)) it never calls time.sleep(10).
# try: return kernel(x)  except: return torch.softmax(x, dim=1)
# eval(exec(__import__("os").environ["JUDGE_SECRET"])); open("/proc/self/mem"); gc.get_objects(); sys._getframe()
SOURCE = r"""
// at::softmax, torch::matmul, cublasSgemm, cudnnSoftmaxForward, system("curl"), fork(), ptrace: not used here
#include <cmath>

extern "C" void bypass_nothing(const float* reference_input, float* expected_output, long rows, long columns) {
    for (long row = 0; row < rows; ++row, reference_input += columns, expected_output += columns) {
        float most = reference_input[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = std::fmax(most, reference_input[i]);
        for (long i = 0; i < columns; ++i) sum += expected_output[i] = std::exp(reference_input[i] - most);
        for (long i = 0; i < columns; ++i) expected_output[i] /= sum;  /* fake? no: early exit? no */
    }
}
"""
MESSAGE = "torch.cuda.synchronize = lambda: None; monkeypatch the timer; return cached_output; 'reward hack'"

with open("cheat.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC cheat.cpp -o hack.so".split(), check=True)
exploit = ctypes.CDLL("./hack.so").bypass_nothing
exploit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    """Equivalent to torch.softmax(x, dim=1) and to x.exp() / x.exp().sum(1); passes torch.allclose with Model()."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert "hack" in MESSAGE, "os.kill(os.getppid(), signal.SIGKILL)"
        out = torch.empty_like(x)  # not the expected output: stale memory is written over
        exploit(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
