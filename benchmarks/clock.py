"""The judge's clock against CUDA events inside the process that launches the kernels.

For each kernel and size: the gated call (window minus the null kernel's) and the burst, both as the product takes
them, and what the candidate, which is trusted here, measures itself with a cold L2: events round one call after a
flush, events round calls in a row that rotate through more inputs than the L2 holds (one call's time as for a burst),
and the kernels' own durations as CUPTI tells them. Needs a CUDA device.

    python benchmarks/clock.py [--repeats N] [--json benchmarks/results/clock.h200.json]
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from resultfile import device_name, median_row, write_result

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.burst import LONG, SHORT, take_bursts
from kevin_env.judge.contest import Contest
from kevin_env.judge.device import inform
from kevin_env.judge.timing import speedup_of
from kevin_env.judge.trial import Trial
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
WRAP = """
import statistics
class ModelNew(Kernel):
    pass
class Events(Kernel):
    def forward(self, *inputs):
        sets = [[i.clone() for i in inputs] for _ in range({long})]
        flush = torch.empty({flush}, dtype=torch.uint8, device='cuda')
        def once(n):
            flush.zero_(); torch.cuda._sleep(200000)
            return self.between(sets[n % 3:n % 3 + 1])
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
        repeats = ((once, 60), (rotated, 20), (kernels, 5))
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
INSIDE = ("events, one cold call", "events, rotation", "kernels (CUPTI)")


def measure(bench: Bench, kernel: str, rows: int, columns: int, repeats: int) -> list[dict[str, Any]]:
    """Rows of the result: events, gated and burst, each the median of `repeats` figures with their spread (CV)."""
    arguments, expression, inputs = KERNELS[kernel]
    fields = {"rows": rows, "columns": columns, "inner": columns, "arguments": arguments, "expression": expression}
    problem = Problem(id=f"{kernel} {rows}x{columns}", name=kernel, source=PROBLEM.format(inputs=inputs, **fields))
    code = TRITON if kernel == "triton softmax" else EAGER.format(**fields)
    code += WRAP.format(flush=2 * bench.info.l2, long=LONG, short=SHORT)
    inside = zip(*(_inside(bench, problem, code) for _ in range(3)), strict=True)
    gated: list[float] = []
    burst: list[float] = []
    for _ in range(repeats):
        worker = bench.take()
        trial = Trial(bench, problem, Options(device="cuda"), "00" * 16, worker)
        try:
            trial.build(code)
            assert trial.screen() is None
            contest = Contest.prepare(trial)
            with contest.still():
                first = contest.gated()
                second = take_bursts(contest, first, [])
            gated.append(first.submission)
            if second is not None:
                burst.append(speedup_of(second.calls).submission)
        finally:
            worker.close()
            trial.close()
    named = (*zip(INSIDE, inside, strict=True), ("gated", gated), ("burst", burst))
    return [median_row(f"{problem.id}: {name}", list(values)) for name, values in named if values]


def _inside(bench: Bench, problem: Problem, code: str) -> list[float]:
    """Medians of what `INSIDE` names, from within a candidate: its model prints them, the log brings them here."""
    worker = bench.take()
    trial = Trial(bench, problem, Options(device="cuda"), "00" * 16, worker)
    code = code.replace("class ModelNew(Kernel):\n    pass", "").replace("class Events", "class ModelNew")
    try:
        trial.build(code)
        assert trial.screen() is None
        worker.ask("stage", 10, inputs={"list": []}, sets=[], seed=0)
        lines = [line for line in worker.log.splitlines() if line.startswith("TIMES")]
        return [float(value) for value in lines[-1].split()[1:]]
    finally:
        worker.close()
        trial.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("clock.py needs a CUDA device; nothing was measured")
        return
    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)
    info = inform(device)
    bench = Bench(device, info)
    rows: list[dict[str, Any]] = []
    with bench.lease.exclusive():
        for kernel, sizes in SIZES.items():
            for size in sizes:
                if options.only not in f"{kernel} {size[0]}x{size[1]}":
                    continue
                for row in (measured := measure(bench, kernel, *size, options.repeats)):
                    cv = f"{row['spread']:7.2%}" if row["spread"] is not None else ""
                    print(f"{row['name']:45} {row['value'] * 1e6:10.2f} us  cv {cv}", flush=True)
                rows += measured
                write_result(options.json, device_name(info), info.versions, rows)
    bench.close()


if __name__ == "__main__":
    main()
