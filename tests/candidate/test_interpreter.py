"""Kernels on bfloat16 in Triton's interpreter, which holds their bits as integers."""

import os
import subprocess
import sys
from pathlib import Path

KERNELS = """
import torch, triton, triton.language as tl
from triton.language.extra import libdevice
from kevin_env.candidate import interpreter
interpreter.complete()

@triton.jit
def product(a, b, c, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), acc=tl.full((N, N), 1.0, tl.float32)))

@triton.jit
def combined(x, y):
    return x + y * 0.5

@triton.jit
def several(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, a + b)
    tl.store(out + N + at, -a * b + 2.0)
    tl.store(out + 2 * N + at, tl.where(a < b, a, b))
    tl.store(out + 3 * N + at, tl.maximum(a, b) / (tl.abs(b) + 1.0))
    tl.store(out + 4 * N + at, tl.exp(a.to(tl.float32)).to(tl.bfloat16))
    tl.store(out + 5 * N + at, tl.sum(a, 0) + tl.zeros((N,), tl.bfloat16))
    tl.store(out + 6 * N + at, tl.max(a, 0) + tl.zeros((N,), tl.bfloat16))
    tl.store(out + 7 * N + at, tl.reduce(a, 0, combined) + tl.zeros((N,), tl.bfloat16))
    tl.store(out + 8 * N + at, (10 * a).to(tl.int32).to(tl.bfloat16))
    tl.store(out + 9 * N + at, libdevice.tanh(a))

torch.manual_seed(0)
a, b = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16()
c = torch.empty(16, 16)
product[(1,)](a, b, c, 16)
torch.testing.assert_close(c, a.float() @ b.float() + 1)
x, y = torch.randn(2, 64).bfloat16()
out = torch.empty(10, 64, dtype=torch.bfloat16)
several[(1,)](x, y, out, 64)
last = x[0]
for each in x[1:]:
    last = last + each * 0.5
wide = lambda number: number.expand(64)
wanted = [
    x + y, -x * y + 2, torch.minimum(x, y), torch.maximum(x, y) / (y.abs() + 1), x.exp(),
    wide(x.float().sum().bfloat16()), wide(x.max()), wide(last), (10 * x).int().bfloat16(), x.tanh(),
]
for i, (row, right) in enumerate(zip(out, wanted)):
    torch.testing.assert_close(row, right, rtol=2**-6, atol=2**-6, msg=f"row {i}: {row} {right}")
"""


ASSEMBLY = """
import torch, triton, triton.language as tl
from kevin_env.candidate import interpreter
interpreter.complete()

@triton.jit
def kernel(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    v = tl.inline_asm_elementwise("rcp.approx.f32 $0, $1;", "=r,r", [v], tl.float32, True, 1)
    tl.store(x + tl.arange(0, N), v)

kernel[(1,)](torch.ones(64), 64)
"""


def interpreted(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    file = folder / "kernels.py"
    file.write_text(code)
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    return subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, check=False
    )


def test_bfloat16_is_computed_as_numbers(tmp_path: Path) -> None:
    ran = interpreted(tmp_path, KERNELS)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_inline_assembly_says_why_it_cannot_run(tmp_path: Path) -> None:
    ran = interpreted(tmp_path, ASSEMBLY)
    assert "inline assembly needs a GPU: Triton's interpreter" in ran.stderr
