"""Kernels from 6 us to 10 ms as problems and submissions, and their times by other tools.

Used by `clock.py` and `timing_fidelity.py`.
"""

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from by_hand import ONE_CALL, read_value, run

from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem

INSIDE = Path(__file__).resolve().with_name("inside.py")
MODEL = """
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {weights}
    def forward(self, x):
        return {expression}
"""
PROBLEM = """
import torch
DISTRIBUTIONS = ("own",)
{model}
def get_inputs():
    return [torch.randn({shape})]
def get_init_inputs():
    return []
"""
EAGER = "import torch"
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def softmax_rows(x, y, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = tl.load(x + at)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at, e / tl.sum(e, 0))
@triton.jit
def layer_norm_rows(x, y, w, b, B: tl.constexpr):
    column = tl.arange(0, B)
    at = tl.program_id(0).to(tl.int64) * B + column
    v = tl.load(x + at)
    d = v - tl.sum(v, 0) / B
    r = tl.rsqrt(tl.sum(d * d, 0) / B + 1e-5)
    tl.store(y + at, d * r * tl.load(w + column) + tl.load(b + column))
def over_rows(kernel, x, *weights):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, *weights, B=x.shape[1], num_warps=16)
    return y
"""
CUDA = """
import torch
SOURCE = '''
extern "C" __global__ void relu(const float* x, float* y) {
    long long i = blockIdx.x * 256LL + threadIdx.x;
    y[i] = x[i] < 0 ? 0 : x[i];
}
extern "C" __global__ void affine(const float* x, float* y, const float* w, const float* b, int n) {
    long long i = blockIdx.x * 256LL + threadIdx.x;
    y[i] = x[i] * w[i % n] + b[i % n];
}
'''
relu, affine = (torch.cuda._compile_kernel(SOURCE, name) for name in ("relu", "affine"))
def over_elements(kernel, x, *more):
    y = torch.empty_like(x)
    kernel(grid=(x.numel() // 256, 1, 1), block=(256, 1, 1), args=[x, y, *more])
    return y
"""
AFFINE = "self.scale, self.shift = (torch.nn.Parameter(torch.randn(1 << 24)) for _ in range(2))"
NCU_METRIC = "gpu__time_duration.sum"
REST = {"cpu": 0.5, "cuda": 0.0}
"""Seconds before each judgement, by device. On a CPU the next candidate is started meanwhile."""
Times = dict[str, dict[str, float]]
"""Seconds of a call by side (`reference`, `submission`) and tool."""


@dataclass(frozen=True)
class Kernel:
    """A problem, and a submission that is judged again and again."""

    name: str
    problem: Problem
    code: str


def kernel(
    name: str, shape: str, expression: str, own: str = "", source: str = EAGER, weights: str = ""
) -> Kernel:
    """One of the kernels.

    Args:
        name: Its name.
        shape: Of the input.
        expression: What the reference returns.
        own: What the submission returns; by default the same.
        source: Code before the submission's model.
        weights: The statement that makes them.
    """
    fields = {"weights": weights or "pass", "name": "Model", "expression": expression}
    problem = PROBLEM.format(model=MODEL.format(**fields), shape=shape)
    code = source + MODEL.format(**{**fields, "name": "ModelNew", "expression": own or expression})
    return Kernel(name, Problem(id=name, name=name, source=problem), code)


def linear(name: str, rows: int, columns: int) -> Kernel:
    """A linear layer of torch's with a square matrix."""
    layer = f"self.layer = torch.nn.Linear({columns}, {columns}, bias=False)"
    return kernel(name, f"{rows}, {columns}", "self.layer(x)", weights=layer)


KERNELS = (
    kernel("cuda relu 4 MB", "1 << 20", "torch.relu(x)", "over_elements(relu, x)", CUDA),
    linear("linear 128x1024, weights 4 MB", 128, 1024),
    kernel("triton softmax 16 MB", "1024, 4096", "torch.softmax(x, -1)",
           "over_rows(softmax_rows, x)", TRITON),
    kernel(
        "triton layer norm 64 MB, weights 32 KB", "4096, 4096", "self.layer(x)",
        "over_rows(layer_norm_rows, x, self.layer.weight, self.layer.bias)", TRITON,
        "self.layer = torch.nn.LayerNorm(4096)",
    ),
    kernel("cuda relu 128 MB", "4096, 8192", "torch.relu(x)", "over_elements(relu, x)", CUDA),
    kernel("softmax 128 MB", "4096, 8192", "torch.softmax(x, -1)"),
    kernel(
        "cuda affine 128 MB, weights 128 MB", "2, 1 << 24", "x * self.scale + self.shift",
        "over_elements(affine, x, self.scale, self.shift, 1 << 24)", CUDA, AFFINE,
    ),
    linear("linear 64x8192, weights 256 MB", 64, 8192),
    kernel("cuda relu 512 MB", "8192, 16384", "torch.relu(x)", "over_elements(relu, x)", CUDA),
    kernel("triton softmax 512 MB", "8192, 16384", "torch.softmax(x, -1)",
           "over_rows(softmax_rows, x)", TRITON),
    kernel(
        "conv 64 MB, weights 144 KB", "16, 64, 128, 128", "self.layer(x)",
        weights="self.layer = torch.nn.Conv2d(64, 64, 3, padding=1)",
    ),
    kernel(
        "two linear 256x4096, weights 128 MB", "256, 4096",
        "self.second(torch.relu(self.first(x)))",
        weights="self.first, self.second = (torch.nn.Linear(4096, 4096) for _ in range(2))",
    ),
    linear("linear 4096x8192, weights 256 MB", 4096, 8192),
)  # fmt: skip
"""By duration. The L2 holds 50 MB."""


@contextmanager
def written(kernels: Sequence[Kernel]) -> Iterator[Path]:
    """A folder with a file for each problem and each submission, by their places."""
    with tempfile.TemporaryDirectory() as folder:
        for place, each in enumerate(kernels):
            Path(folder, f"{place:02}.problem.py").write_text(each.problem.source)
            Path(folder, f"{place:02}.submission.py").write_text(each.code)
        yield Path(folder)


def times_inside(kernels: Sequence[Kernel], *words: str) -> dict[str, Times]:
    """The times that `inside.py` measures for each kernel in one process.

    Raises:
        SystemExit: when it fails.
    """
    with written(kernels) as folder:
        done = subprocess.run(
            [sys.executable, str(INSIDE), str(folder), *words], stdout=subprocess.PIPE, text=True
        )
    if done.returncode:
        raise SystemExit(f"{INSIDE.name} failed: see above")
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))
    return {kernels[int(place)].name: times for place, times in lines}


def time_by_ncu(each: Kernel) -> float | None:
    """Seconds of the kernels of one call by ncu, with cold caches; None if they cannot be measured.

    It needs ncu and permission to read the device's counters, which containers seldom have.
    """
    if shutil.which("ncu") is None:
        return None
    command = [
        "ncu",
        "--csv",
        "--metrics",
        NCU_METRIC,
        "--profile-from-start",
        "off",
        "--clock-control",
        "none",
    ]
    with written([each]) as folder:
        files = [str(folder / f"00.{what}.py") for what in ("submission", "problem")]
        output = run([*command, sys.executable, str(ONE_CALL), *files], str(folder))
    table = csv.DictReader(io.StringIO(output[output.find('"ID"') :] if '"ID"' in output else ""))
    rows = [row for row in table if row.get("Metric Name") == NCU_METRIC]
    values = [read_value(row["Metric Value"], row["Metric Unit"]) for row in rows]
    if not values:
        print(f"ncu has no result for {each.name}: {output.strip()[-200:]}", flush=True)
    return sum(value or 0.0 for value in values) or None


@dataclass(frozen=True)
class Judged:
    """A correct result, and the seconds that the device was reserved to time it."""

    outcome: Correct
    timing: float


def judged(pool: LocalPool, each: Kernel, options: Options) -> Judged:
    """One more judgement of a kernel.

    Raises:
        RuntimeError: if it is not correct.
    """
    time.sleep(REST[options.device])
    judgement = pool.submit(each.problem, Submission(code=each.code), options).result()
    outcome = judgement.outcome
    if not isinstance(outcome, Correct):
        raise RuntimeError(f"{each.name}: {outcome.category}: {outcome.message}")
    speedup = "not timed"
    if outcome.speedup and outcome.speedup_interval:
        speedup = "{:8.4f}  [{:.4f}, {:.4f}]".format(outcome.speedup, *outcome.speedup_interval)
    print(f"{each.name:45} {speedup}  timed in {judgement.seconds.time:.3f} s", flush=True)
    return Judged(outcome, judgement.seconds.time)


def judged_in_turn(
    pool: LocalPool,
    kernels: Sequence[Kernel],
    options: Options,
    count: int,
    seconds: float,
    at_once: int = 1,
) -> dict[str, list[Judged]]:
    """`count` judgements of each kernel by name, or fewer when time is up. A kernel that fails is
    excluded.
    """
    results: dict[str, list[Judged]] = {each.name: [] for each in kernels}
    failed, end = set[str](), time.monotonic() + seconds

    def judge(each: Kernel) -> None:
        if each.name in failed or time.monotonic() > end:
            return
        try:
            results[each.name].append(judged(pool, each, options))
        except (JudgeError, RuntimeError) as error:
            print(f"UNEXPECTED: {error}", flush=True)
            failed.add(each.name)

    with ThreadPoolExecutor(at_once) as executor:
        list(executor.map(judge, [each for _ in range(count) for each in kernels]))
    return {name: judgements for name, judgements in results.items() if name not in failed}
