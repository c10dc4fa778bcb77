"""Column sums in C++ with Kahan's correction, column by column.

problem: column_sums.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

from torch import Tensor, nn

SOURCE = r"""
extern "C" void sums(const float* x, float* total, float* lost, long rows, long columns) {
    for (long i = 0; i < columns; ++i) total[i] = lost[i] = 0;
    for (long row = 0; row < rows; ++row, x += columns)
        for (long i = 0; i < columns; ++i) {
            const float corrected = x[i] - lost[i];
            const float next = total[i] + corrected;
            lost[i] = (next - total[i]) - corrected;
            total[i] = next;
        }
}
"""

built = subprocess.run(
    ["g++", "-x", "c++", "-O3", "-march=native", "-fno-fast-math", "-shared", "-fPIC", "-", "-o", "kahan.so"],
    input=SOURCE,
    text=True,
    capture_output=True,
)
built.check_returncode()
kahan = ctypes.CDLL("./kahan.so").sums
kahan.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = x.new_empty(x.shape[1])
        lost = x.new_empty(x.shape[1])
        kahan(x.data_ptr(), total.data_ptr(), lost.data_ptr(), x.shape[0], x.shape[1])
        return total
