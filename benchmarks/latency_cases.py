"""Further cases of `turn_latency.py`: compiler errors, KernelBench's size, the client, memory."""

import os
import tempfile
import time
from pathlib import Path

from honest import FOLDER
from machine import device_memory, processes_of_judge, proportional_size
from resultfile import Row, median_row, plain_row

from kevin_env.episode import Episode
from kevin_env.outcome import Correct
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem, load_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

COMPILE_ERROR = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void relu_kernel(const float* x, float* y, int64_t n) {{
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) {fault}
}}

torch::Tensor relu_{number}(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}}
"""
module = load_inline(
    "relu_{number}", "torch::Tensor relu_{number}(torch::Tensor x);",
    cuda_sources=CUDA, functions=["relu_{number}"]
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.relu_{number}(x)
'''
FULL_HEADERS = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
static const int fresh_{number} = {number};

torch::Tensor relu_{number}(torch::Tensor x) {{
    return at::clamp_min(x, 0);
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("relu_{number}", &relu_{number}); }}
"""
module = load_inline("relu_{number}", **{{"cpp_sources": "", "{sources}": SOURCE}})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.relu_{number}(x)
'''
FAULTS = ("y[i] = fmaxf(x[i], missing);", "y[i] = fmaxf(x[i], 0)", "y[i] = x;")
FULL_SIZE = Problem(
    id="softmax in KernelBench's size",
    name="softmax",
    source="""
import torch
batch_size, dim = 4096, 393216
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
def get_inputs():
    return [torch.rand(batch_size, dim)]
def get_init_inputs():
    return []
""",
)
"""KernelBench's level 1 problem 23 in its own size: 6.4 GB in, 6.4 GB out."""
FULL_SIZE_KERNEL = """
import torch, triton, triton.language as tl
@triton.jit
def softmax_{number}(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, B)
    most, total = tl.full([B], -float("inf"), tl.float32), tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        v = tl.load(x + row + start + at, mask=start + at < n, other=-float("inf"))
        larger = tl.maximum(most, v)
        safe = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(most - safe) + tl.exp(v - safe)
        most = larger
    peak = tl.max(most, 0)
    scale = 1 / tl.sum(total * tl.exp(most - peak), 0)
    for start in range(0, n, B):
        v = tl.load(x + row + start + at, mask=start + at < n, other=-float("inf"))
        tl.store(y + row + start + at, tl.exp(v - peak) * scale, mask=start + at < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_{number}[(x.shape[0],)](x, y, x.shape[1], B=4096, num_warps=8)
        return y
"""

HISTORY, LAST = 1000, 100
RIGHT = Correct(
    kind="timed", message="all outputs are right", speedup=1.2, speedup_interval=(1.1, 1.3),
    reference_seconds=1e-3,
    submission_seconds=8e-4,
)  # fmt: skip


def full_headers(language: str, number: int) -> str:
    """A C++ or CUDA source that the short headers do not support."""
    return FULL_HEADERS.format(
        sources="cuda_sources" if language == "cuda" else "cpp_sources", number=number
    )


def compile_errors(number: int) -> list[str]:
    """CUDA sources as models write them, with full headers, each with a different fault."""
    return [
        COMPILE_ERROR.format(fault=fault, number=number + place)
        for place, fault in enumerate(FAULTS)
    ]


def client_rows() -> tuple[Row, Row]:
    """The client's part of a turn (prompt, score, trajectory) after a long history of different
    kernels.
    """
    code = (FOLDER / "honest" / "softmax_triton.py").read_text()
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "turns.jsonl")
        pool = ScriptedPool([RIGHT] * HISTORY)
        episode = Episode(
            load_problem("L1_23_Softmax"), pool, Settings(max_turns=HISTORY + 1), recorder=recorder
        )
        episode.start()
        taken = []
        for turn in range(HISTORY):
            reply = f"Changed again.\n```python\n{code}\nCHANGED = {turn}\n```\nIt is faster."
            start = time.perf_counter()
            episode.submit(reply)
            taken.append(time.perf_counter() - start)
    return median_row("client_turn", taken[-LAST:]), median_row(
        "client_turn: without history", taken[:LAST]
    )


def memory_rows(device: str, before: int) -> list[Row]:
    """Memory in use while nothing is judged, by process, and in total on the device.

    Args:
        device: Where this process has a judge, and nothing else.
        before: Bytes of the device that were taken before it was started.
    """
    time.sleep(4 if device == "cuda" else 1)  # warm candidates start one by one
    processes = processes_of_judge(os.getpid())
    rows = [
        plain_row(f"memory: {name} (PSS)", proportional_size(processes[name]), "byte")
        for name in ("judge", "fork server")
    ]
    count = max(1, len(processes["candidates"]) // 2)  # each is a process and its supervisor
    size = proportional_size(processes["candidates"]) / count
    rows.append(plain_row("memory: warm candidate (PSS)", size, "byte", n=count))
    taken = device_memory(device) - before
    if taken > 0:
        rows.append(
            plain_row("device memory: idle judge and warm candidates", taken, "byte", n=1 + count)
        )
        rows.append(
            plain_row("device memory: each of them", taken / (1 + count), "byte", n=1 + count)
        )
    return rows
