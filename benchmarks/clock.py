"""The judge's clock against CUDA events inside the process that launches the kernels.

For each kernel and size: the gated call (window minus the null kernel's) and the burst, both as the product takes
them, and what the candidate, which is trusted here, measures itself with a cold L2: events round one call after a
flush, events round calls in a row that rotate through more inputs than the L2 holds (one call's time as for a burst),
and the kernels' own durations as CUPTI tells them. Needs a CUDA device.

    python benchmarks/clock.py [--repeats N] [--json benchmarks/results/clock.h200.json]
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from kernels import INSIDE, SIZES, as_submission, kernel_case, times_inside
from resultfile import device_name, median_row, write_result

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.burst import take_bursts
from kevin_env.judge.contest import Contest
from kevin_env.judge.device import inform
from kevin_env.judge.measure import make_ready
from kevin_env.judge.processors import on_its_own
from kevin_env.judge.timing import speedup_of
from kevin_env.judge.trial import Trial
from kevin_env.judge.unverified import Unverified


def measure(bench: Bench, kernel: str, rows: int, columns: int, repeats: int) -> list[dict[str, Any]]:
    """Rows of the result: events, gated and burst, each the median of `repeats` figures with their spread (CV)."""
    problem, code = kernel_case(kernel, rows, columns)
    inside = zip(*(times_inside(bench, problem, code) for _ in range(3)), strict=True)
    gated: list[float] = []
    burst: list[float] = []
    for _ in range(repeats):
        worker = bench.take()
        trial = Trial(bench, problem, Options(device="cuda"), "00" * 16, worker)
        try:
            trial.build(as_submission(code))
            unverified = Unverified(trial)
            with ExitStack() as partners:
                with bench.lease.shared():
                    assert trial.screen() is None
                    contest = Contest.prepare(trial, partners, unverified)
                    for _ in make_ready(contest):
                        pass
                with contest.still(), bench.lease.exclusive(), on_its_own(str(bench.device)):
                    unverified.use_room()
                    first = contest.gated()
                    second = take_bursts(contest, first, [])
            unverified.compare()
            gated.append(first.submission)
            if second is not None:
                burst.append(speedup_of(second.calls).submission)
        finally:
            worker.close()
            trial.close()
    named = (*zip(INSIDE, inside, strict=True), ("gated", gated), ("burst", burst))
    return [median_row(f"{problem.id}: {name}", list(values)) for name, values in named if values]


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
