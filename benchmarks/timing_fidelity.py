"""Whether a speedup can be trusted: how it repeats, what others' work does to it, how far its times are from CUPTI's.

`speedup_cv`: coefficient of variation of a fixed kernel's speedup over ten judgements; the largest of several kernels.
`speedup_under_load`: the median speedup of a fixed kernel while 16 (on a CPU 2) other submissions are compiled, and
judged, by other pools on the same device, over its quiet value; of several kernels the one furthest from 1.
`bias_cupti`: a submission's time as the verdict tells it against the kernels' own durations as CUPTI tells them within
a candidate that is trusted here: difference over the latter, of kernels from 100 us up the largest. `bias_ncu`: the
same against ncu, where that may read the device's counters. On a GPU only; verdicts too noisy to tell a time are left
out.
`coverage`: share of intervals that contain 1, of references that are judged as submissions against themselves, each in
a fresh process, while other pools judge on the same device; with how many lie above 1 and below.

    python benchmarks/timing_fidelity.py [--device cpu|cuda] [--rows cv load bias coverage] [--repeats 10] [--json FILE]

`load` needs the quiet values, so it measures `cv` as well.
"""

import argparse
import itertools
import random
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from honest import Entry, filled_up, freshened, honest_entries, warm
from kernels import INSIDE, as_submission, kernel_case, time_by_ncu, times_inside
from resultfile import Results, device_name, plain_row

from kevin_env import parsing
from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.judge.pool import LocalPool
from kevin_env.outcome import Correct
from kevin_env.problem import Problem

GPU_KERNELS = (
    ("triton softmax", 8192, 16384), ("relu", 4096, 8192), ("triton softmax", 4096, 8192), ("softmax", 8192, 16384),
    ("matmul", 2048, 4096),
)  # fmt: skip
"""From 60 us to some milliseconds."""
BIAS_KERNELS = (
    ("softmax", 4096, 8192), ("relu", 8192, 16384), ("triton softmax", 8192, 16384), ("matmul", 2048, 4096),
)  # fmt: skip
"""From 140 us up."""
CPU_KERNELS = ("honest/softmax_ctypes", "honest/rms_norm_positions_inside")
LOADED_KERNELS = 2
LOAD = {"cpu": 2, "cuda": 16}
LOAD_POOLS = 2
"""Pools that the load comes from: one alone would not take all of it at once on a small machine."""
REST = 0.5
KINDS = {"cpu": ("cpp",), "cuda": ("triton", "cuda")}
Fixed = tuple[Problem, str]
"""A problem and the code of a kernel that is judged again and again."""


def fixed_kernels(device: str) -> list[Fixed]:
    """The kernels whose speedups are looked at."""
    if device == "cuda":
        cases = [kernel_case(*each) for each in GPU_KERNELS]
        return [(problem, as_submission(code)) for problem, code in cases]
    entries = [each for each in honest_entries(device) if each.name in CPU_KERNELS]
    return [(each.task, each.code) for each in entries]


def judged(pool: LocalPool, fixed: Fixed, options: Options) -> Correct:
    """One more judgement of a fixed kernel.

    Raises:
        RuntimeError: when it is not right.
    """
    time.sleep(REST)
    outcome = pool.submit(fixed[0], Submission(code=fixed[1]), options).result().outcome
    if not isinstance(outcome, Correct):
        raise RuntimeError(f"{fixed[0].id}: {outcome.category}: {outcome.message}")
    return outcome


def speedups(pool: LocalPool, fixed: Fixed, options: Options, count: int) -> list[float]:
    """Those of so many judgements that have one."""
    found: list[float] = []
    for number in range(count):
        start, outcome = time.perf_counter(), judged(pool, fixed, options)
        told = f"{outcome.speedup:.4f}" if outcome.speedup else "too noisy"
        print(f"{fixed[0].id:28} {number + 1:3} of {count}  {told}  {time.perf_counter() - start:.1f} s", flush=True)
        found += [outcome.speedup] if outcome.speedup else []
    return found


def cv_rows(pool: LocalPool, kernels: list[Fixed], options: Options, count: int, results: Results) -> list[list[float]]:
    """How quiet speedups vary; gives them."""
    quiet: list[list[float]] = []
    for fixed in kernels:
        warm(pool, fixed[0], options)
        quiet.append(speedups(pool, fixed, options, count))
        if len(quiet[-1]) > 1:
            cv = statistics.stdev(quiet[-1]) / statistics.mean(quiet[-1])
            results.tell(plain_row(f"speedup_cv: {fixed[0].id}", cv, "share", n=len(quiet[-1])) | {"judged": count})
        results.put_largest("speedup_cv", "speedup_cv: ")
    return quiet


@contextmanager
def loaded(device: str, entries: list[Entry], count: int) -> Iterator[list[str]]:
    """Keeps so many submissions under way in pools of their own; gives the names of those that were judged."""
    ended, done = threading.Event(), list[str]()
    numbers = itertools.count(random.SystemRandom().randrange(1, 1 << 29))

    def keep(pool: LocalPool) -> None:
        while not ended.is_set():
            entry = freshened(random.choice(entries), next(numbers))
            try:
                pool.submit(entry.task, Submission(code=entry.code), Options(device=device)).result()
            except JudgeError:  # as they are when it ends
                continue
            done.append(entry.name)

    with ExitStack() as stack:
        pools = [stack.enter_context(LocalPool()) for _ in range(LOAD_POOLS)]
        for pool in pools:
            pool.device(device)
        stack.callback(ended.set)  # before the pools are closed
        for number in range(count):
            threading.Thread(target=keep, args=(pools[number % LOAD_POOLS],), daemon=True).start()
        yield done


def load_rows(
    pool: LocalPool, kernels: list[Fixed], quiet: list[list[float]], options: Options, count: int, results: Results
) -> None:
    """Speedups under load over quiet ones."""
    device, many = options.device, LOAD[options.device]
    entries = [each for kind in KINDS[device] for each in filled_up(kind, 0, device)]
    ratios: list[float] = []
    with loaded(device, entries, many) as done:
        for fixed, before in list(zip(kernels, quiet, strict=True))[:LOADED_KERNELS]:
            found = speedups(pool, fixed, options, count)
            if found and before:
                ratios.append(statistics.median(found) / statistics.median(before))
                name = f"speedup_under_load: {fixed[0].id}"
                results.tell(plain_row(name, ratios[-1], "times the quiet one", n=len(found)) | {"judged": count})
                furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
                results.put(plain_row("speedup_under_load", furthest, "times the quiet one", n=len(ratios)))
            results.tell(plain_row("speedup_under_load: others judged meanwhile", len(done)))


def coverage_rows(pool: LocalPool, problems: list[Problem], options: Options, count: int, results: Results) -> None:
    """How often intervals of a reference against itself contain 1 under load."""
    entries = [each for kind in KINDS[options.device] for each in filled_up(kind, 0, options.device)]
    intervals: list[tuple[float, float]] = []
    with loaded(options.device, entries, LOAD[options.device]) as done:
        for problem, number in itertools.product(problems, range(count)):
            outcome = judged(pool, (problem, parsing.as_submission(problem.source)), options)
            low, high = outcome.speedup_interval or (0.0, 0.0)
            intervals.append((low, high))
            told = f"{outcome.speedup:.3f} [{low:.3f}, {high:.3f}]" if outcome.speedup else "not believed"
            print(f"{problem.id:28} {number + 1:3} of {count}  {told}", flush=True)
        above, below = sum(low > 1 for low, _ in intervals), sum(high < 1 for _, high in intervals)
        width = statistics.median(high / low for low, high in intervals if low)
        row = plain_row("coverage", 1 - (above + below) / len(intervals), "share", n=len(intervals))
        results.tell(row | {"above": above, "below": below, "median_high_over_low": width})
        results.tell(plain_row("coverage: others judged meanwhile", len(done)))


def bias_rows(verdicts: dict[str, float], results: Results) -> None:
    """Times as verdicts tell them against the kernels' own."""
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)
    bench = Bench(device, inform(device))
    try:
        for case in BIAS_KERNELS:
            problem, code = kernel_case(*case)
            if problem.id not in verdicts:
                continue
            inside = dict(zip(INSIDE, times_inside(bench, problem, code), strict=True))["kernels (CUPTI)"]
            with bench.lease.exclusive():
                by_ncu = time_by_ncu(*case)
            for name, seconds in (("bias_cupti", inside), ("bias_ncu", by_ncu)):
                if seconds:
                    bias = abs(verdicts[problem.id] / seconds - 1)
                    extra = {"verdict_seconds": verdicts[problem.id], "tool_seconds": seconds}
                    results.tell(plain_row(f"{name}: {problem.id}", bias, "share") | extra)
                results.put_largest(name, f"{name}: ")
    finally:
        bench.close()


def times_of(pool: LocalPool, options: Options) -> dict[str, float]:
    """What verdicts tell of the kernels that are held against tools: the median of three, without what is too noisy."""
    found: dict[str, float] = {}
    for case in BIAS_KERNELS:
        problem, code = kernel_case(*case)
        warm(pool, problem, options)
        outcomes = [judged(pool, (problem, as_submission(code)), options) for _ in range(3)]
        times = [each.submission_seconds for each in outcomes if each.submission_seconds]
        if times:
            found[problem.id] = statistics.median(times)
        told = f"{found[problem.id] * 1e6:10.2f} us" if times else "no time, too noisy,"
        print(f"{problem.id:28} {told} by the verdict", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rows", nargs="+", default=["cv", "load", "bias"], choices=("cv", "load", "bias", "coverage"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    how, verdicts = Options(device=options.device), {}
    with LocalPool() as pool:
        info = pool.device(options.device)
        results = Results(options.json, device_name(info), info.versions)
        if {"cv", "load"} & set(options.rows):
            kernels = fixed_kernels(options.device)
            quiet = cv_rows(pool, kernels, how, options.repeats, results)
            if "load" in options.rows:
                load_rows(pool, kernels, quiet, how, max(5, options.repeats // 2), results)
        if "coverage" in options.rows:
            problems = [problem for problem, _ in fixed_kernels(options.device)]
            coverage_rows(pool, problems, how, options.repeats, results)
        if "bias" in options.rows and options.device == "cuda":
            verdicts = times_of(pool, how)
    if verdicts:
        bias_rows(verdicts, results)
    print()
    results.tell_all()


if __name__ == "__main__":
    main()
