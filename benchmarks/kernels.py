"""Kernels of known sizes as problems and submissions, and what they take as their own process sees it.

Used by `clock.py` and `timing_fidelity.py`.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.nullkernel import null_code
from kevin_env.judge.trial import Trial
from kevin_env.judge.worker import Worker
from kevin_env.problem import Problem

PROBLEM = """
import torch
DISTRIBUTIONS = ("own",)
R, C, K = {rows}, {columns}, {inner}
class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {expression}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64); c = tl.arange(0, B); m = c < n
    v = tl.load(x + row * n + c, mask=m, other=-float('inf')); e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + c, e / tl.sum(e, 0), mask=m)
class Kernel(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=16)
        return y
"""
EAGER = """
import torch
class Kernel(torch.nn.Module):
    def forward(self, {arguments}):
        return {expression}
"""
NOTED = """
import os, time
calls = []
def noting(call):
    def noted(self, *inputs):
        begin = time.perf_counter_ns()
        outputs = call(self, *inputs)
        calls.append((begin, (time.perf_counter_ns() - begin) / 1e9))
        return outputs
    return noted
def written():
    noted = [*calls]
    with open(os.path.join(os.path.dirname(__file__), 'calls'), 'a') as file:
        print(*(f'{begin} {seconds}' for begin, seconds in noted), sep='\\n', file=file)
    calls.clear()
    return noted
"""
NOTED_MODEL = """
class ModelNew(Kernel):
    __call__ = noting(Kernel.__call__)
    def __init__(self):
        super().__init__()
        if written():
            ModelNew.__call__ = Kernel.__call__
"""
NOTED_NULL = """
def telling(make):
    def made(self, *given):
        written()
        make(self, *given)
    return made
ModelNew.__call__, ModelNew.__init__ = noting(ModelNew.__call__), telling(ModelNew.__init__)
"""
EVENTS = """
import statistics, time
class ModelNew(Kernel):
    def forward(self, *inputs):
        sets = [[i.clone() for i in inputs] for _ in range({long})]
        flush = torch.empty({flush}, dtype=torch.uint8, device='cuda')
        def once(n, cycles=200000):
            flush.zero_(); torch.cuda._sleep(cycles)
            return self.between(sets[n % 3:n % 3 + 1])
        def rested(n):
            time.sleep(0.02)
            return once(n, 1000000)
        def rotated(n):
            times = []
            for count in ({long}, {short}):
                torch.cuda._sleep(4000000)
                times.append(self.between(sets[:count]))
            return (times[0] - times[1]) / ({long} - {short})
        def kernels(n):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
                torch.cuda._sleep(4000000)
                self.between(sets)
            spans = [e.device_time for e in trace.events() if 'spin' not in e.name and e.device_time]
            return sum(spans) / 1e6 / len(sets)
        rotated(0); kernels(0)
        repeats = ((once, 60), (rested, 20), (rotated, 20), (kernels, 5))
        print('TIMES', *(statistics.median(take(n) for n in range(count)) for take, count in repeats))
        return Kernel.forward(self, *inputs)
    def between(self, sets):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        outputs = []
        a.record()
        for one in sets:
            outputs.append(Kernel.forward(self, *one))
        b.record(); torch.cuda.synchronize()
        return a.elapsed_time(b) / 1e3
"""
ALONE = """
model = Kernel()
with torch.device("cuda"):
    inputs = get_inputs()
model(*inputs)
torch.cuda.synchronize()
torch.cuda.profiler.start()
for _ in range({calls}):
    model(*inputs)
torch.cuda.synchronize()
torch.cuda.profiler.stop()
"""
NCU_METRIC = "gpu__time_duration.sum"
NCU_CALLS = 5
NCU_SECONDS = 60
X = "torch.randn(R, C)"
KERNELS = {
    "softmax": ("x", "torch.softmax(x, -1)", X),
    "relu": ("x", "torch.relu(x)", X),
    "triton softmax": ("x", "torch.softmax(x, -1)", X),
    "matmul": ("x, w", "x @ w", f"{X}, torch.randn(C, K)"),
}
SIZES = {
    "softmax": [(4096, 4096), (4096, 8192), (8192, 16384)],
    "relu": [(4096, 8192), (8192, 16384)],
    "triton softmax": [(4096, 8192), (8192, 16384)],
    "matmul": [(4096, 8192)],
}
INSIDE = ("events, one cold call", "events, one cold call after a rest", "events, rotation", "kernels (CUPTI)")
"""What `times_inside` gives, each in seconds."""


def kernel_case(kernel: str, rows: int, columns: int) -> tuple[Problem, str]:
    """A problem of that size, and the code of a class `Kernel` that solves it."""
    arguments, expression, inputs = KERNELS[kernel]
    fields = {"rows": rows, "columns": columns, "inner": columns, "arguments": arguments, "expression": expression}
    problem = Problem(id=f"{kernel} {rows}x{columns}", name=kernel, source=PROBLEM.format(inputs=inputs, **fields))
    return problem, TRITON if kernel == "triton softmax" else EAGER.format(**fields)


def as_submission(code: str) -> str:
    """The kernel as it is judged."""
    return f"{code}\nclass ModelNew(Kernel):\n    pass\n"


def as_noted(code: str) -> str:
    """The same, noting what each call takes to launch until it is constructed again: then that is written to a file."""
    return f"{code}\n{NOTED}\n{NOTED_MODEL}"


def noted_null() -> str:
    """The null kernel's model, noting the same of all of its calls, instead of `null_code`."""
    return f"{null_code()}\n{NOTED}\n{NOTED_NULL}"


def noted_calls(worker: Worker) -> list[tuple[int, float]]:
    """When each call began, by `time.perf_counter_ns`, and what it took to launch, in seconds."""
    read = worker.ask("read", 10, path=str(worker.folder / "calls"), limit=1 << 20)["text"]
    told = [line.split() for line in read.splitlines() if line]
    return [(int(when), float(seconds)) for when, seconds in told]


def times_inside(bench: Bench, problem: Problem, code: str) -> list[float]:
    """Medians of what `INSIDE` names, from within a candidate: its model prints them, the log brings them here."""
    worker = bench.take()
    trial = Trial(bench, problem, Options(device="cuda"), "00" * 16, worker)
    try:
        trial.build(code + EVENTS.format(flush=2 * bench.info.l2, long=16, short=2))
        with bench.lease.exclusive():
            assert trial.screen() is None
        worker.ask("stage", 10, inputs={"list": []}, specs=[], seed=0)
        lines = [line for line in worker.log.splitlines() if line.startswith("TIMES")]
        return [float(value) for value in lines[-1].split()[1:]]
    finally:
        worker.close()
        trial.close()


def time_by_ncu(kernel: str, rows: int, columns: int) -> float | None:
    """Seconds that the kernels of one call take as ncu tells it, caches cold; None where it cannot be had.

    It needs a program of that name and the right to read the device's counters, which containers seldom have.
    """
    if shutil.which("ncu") is None:
        return None
    problem, code = kernel_case(kernel, rows, columns)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "alone.py"
        file.write_text(f"{problem.source}\n{code}\n{ALONE.format(calls=NCU_CALLS)}")
        options = ["--csv", "--metrics", NCU_METRIC, "--profile-from-start", "off", "--clock-control", "none"]
        done = subprocess.run(
            ["ncu", *options, sys.executable, str(file)], capture_output=True, text=True, timeout=NCU_SECONDS
        )
    table = [line for line in done.stdout.splitlines() if line.startswith('"')]
    found = [row for row in csv.DictReader(table) if row["Metric Name"] == NCU_METRIC]
    if not found:
        print(f"ncu tells nothing: {(done.stdout + done.stderr).strip()[-200:]}", flush=True)
        return None
    units = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3}
    times = [float(row["Metric Value"].replace(",", "")) * units[row["Metric Unit"]] for row in found]
    return sum(times) / NCU_CALLS
