"""Whether speedups can be trusted: repeatability, coverage of intervals, effect of load.

Fixed kernels are judged in turn, each time in a fresh candidate process.

`cv`: `speedup_cv`, the largest coefficient of variation of a kernel's speedup. `coverage`:
`coverage`, the share of intervals that contain the true speedup, and `half_width`, the median of
the wider sides of intervals, relative to the speedup. On a GPU the truth is measured inside the
launching processes (`inside.py`; medians of several processes) by CUDA events, which include the
gaps between kernels, and by CUPTI, which does not; an interval counts if it meets the range between
them. `stage`: `time_stage`, how long the device was reserved to time a submission: the median of
kernels below 1 ms. `load`: `speedup_under_load`, the median speedup while other pools compile and
judge 16 submissions on the same device, over its quiet value; of several kernels the one furthest
from 1.

On a CPU honest files of the corpus are judged, and every judge is replaced after `ROUNDS`. The
truth of a file is the median speedup of all its judgements. `timed` is the share of files of which
most judgements are not noisy. With `--beside N`, that many busy loops run meanwhile, and rows say
so.

    python benchmarks/timing_fidelity.py [--device cpu|cuda] [--rows cv coverage stage load] \\
        [--repeats 25] [--at-once 1] [--beside 0] [--seconds 150] [--json FILE]

After `--seconds` no further judgement starts, in the quiet part and under load each.
"""

import argparse
import itertools
import random
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from honest import filled_up, freshened, honest_entries
from kernels import KERNELS, Judged, Kernel, judged_in_turn, times_inside
from machine import busy_loops
from resultfile import Results, device_name, plain_row

from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.judge.api import PACES
from kevin_env.pools.local import LocalPool

ON_GPU = (
    "cuda relu 4 MB", "linear 128x1024, weights 4 MB", "triton layer norm 64 MB, weights 32 KB",
    "softmax 128 MB",
    "cuda affine 128 MB, weights 128 MB", "triton softmax 512 MB", "conv 64 MB, weights 144 KB",
    "linear 4096x8192, weights 256 MB",
)  # fmt: skip
ON_CPU = (
    "column_sums_tree", "crc32_slicing_tables", "cross_entropy_ctypes", "extremes_ctypes",
    "heat_two_buffers", "layer_norm_one_pass", "linear_packed_by_hook", "matmul_vector_intrinsics",
    "moments_welford", "residual_input_returned", "rms_norm_positions_inside",
    "row_means_expanded_copy", "row_norms_pinned_threads", "softmax_ctypes",
    "softmax_openmp_buffers", "softmax_threads",
)  # fmt: skip
"""Honest files with calls of 0.1 to 40 ms, in C++ and torch, with one thread and several."""
ROUNDS = 3
"""Judgements of each file on a CPU before the judge is replaced."""
LOADED = ("cuda affine 128 MB, weights 128 MB", "triton softmax 512 MB")
"""Kernels whose speedups are measured under load."""
LOADED_REPEATS = 5
LOAD = 16
LOAD_POOLS = 2
"""Pools that generate the load: one alone would not run all of it at once on a small machine."""
KINDS = ("triton", "cuda")
TRUTHS = 3
"""Processes that measure the truth, with different memory layouts."""
SHORT = 1e-3
"""Seconds of a call, of either side, below which a kernel counts in `time_stage`."""
Judgements = Mapping[str, Sequence[Judged]]
"""Judgements by kernel."""


def fixed_kernels(device: str) -> list[Kernel]:
    """The kernels whose speedups are measured."""
    if device == "cuda":
        return [each for each in KERNELS if each.name in ON_GPU]
    return [
        Kernel(each.name, each.task, each.code)
        for each in honest_entries(device)
        if each.path.stem in ON_CPU
    ]


def true_speedups(kernels: Sequence[Kernel]) -> dict[str, list[float]]:
    """The times of each kernel by tool on a GPU: medians of several processes."""
    runs = [times_inside(kernels, "cupti") for _ in range(TRUTHS)]
    speedups_of: dict[str, list[float]] = {}
    for name in (each.name for each in kernels):
        sides = [(of[name]["reference"], of[name]["submission"]) for of in runs]
        ratios = [
            [a[tool] / b[tool] for a, b in sides if tool in a and tool in b]
            for tool in ("events", "cupti")
        ]
        speedups_of[name] = [statistics.median(each) for each in ratios if each]
    return speedups_of


def speedups(judgements: Sequence[Judged]) -> list[float]:
    """The speedups of judgements that have one."""
    return [each.outcome.speedup for each in judgements if each.outcome.speedup]


def cv_rows(judged: Judgements, results: Results) -> None:
    """The variation of speedups."""
    for name, judgements in judged.items():
        if len(values := speedups(judgements)) > 1:
            cv = statistics.stdev(values) / statistics.mean(values)
            row = plain_row(f"speedup_cv: {name}", cv, "share", n=len(values))
            results.put(row | {"judged": len(judgements), "speedup": statistics.median(values)})
    results.put_largest("speedup_cv", "speedup_cv: ")


def coverage_rows(
    judged: Judgements, truths: Mapping[str, Sequence[float]], device: str, results: Results
) -> None:
    """The share of intervals that contain the truth, and their width."""
    contained, widths = list[bool](), list[float]()
    for name, judgements in judged.items():
        least, most = min(truths[name]), max(truths[name])
        measured = [(each.outcome.speedup, *each.outcome.speedup_interval) for each in judgements
                if each.outcome.speedup and each.outcome.speedup_interval]  # fmt: skip
        if not measured:
            continue
        inside = [low <= most and least <= high for _, low, high in measured]
        sides = [max(high - speedup, speedup - low) / speedup for speedup, low, high in measured]
        row = plain_row(f"coverage: {name}", statistics.mean(inside), "share", n=len(measured))
        results.put(row | {
            "truth_from_to": [least, most],
            "speedup": statistics.median(speedup for speedup, *_ in measured),
            "half_width": statistics.median(sides),
            "above": sum(low > most for _, low, _ in measured),
            "below": sum(high < least for *_, high in measured),
        })  # fmt: skip
        contained += inside
        widths += sides
    if contained:
        results.put(plain_row("coverage", statistics.mean(contained), "share", n=len(contained)))
        row = plain_row("half_width", statistics.median(widths), "share", n=len(widths))
        results.put(row | {"precision": PACES[device].precision})


def stage_rows(judged: Judgements, results: Results) -> None:
    """How long the device was reserved."""
    short = list[float]()
    for name, judgements in judged.items():
        if not judgements:
            continue
        times = [each.timing for each in judgements]
        calls = [each.outcome.reference_seconds or 0.0 for each in judgements]
        calls += [each.outcome.submission_seconds or 0.0 for each in judgements]
        row = plain_row(f"time_stage: {name}", statistics.median(times), "s", n=len(times))
        results.put(row | {"from_to": [min(times), max(times)], "longest_call": max(calls)})
        short += times if max(calls) < SHORT else []
    if short:
        results.put(plain_row("time_stage", statistics.median(short), "s", n=len(short)))


@contextmanager
def loaded() -> Iterator[list[str]]:
    """Judges submissions in separate pools until stopped; yields the names of the judged ones."""
    entries = [each for kind in KINDS for each in filled_up(kind, 0, "cuda")]
    ended, done = threading.Event(), list[str]()
    numbers = itertools.count(random.SystemRandom().randrange(1, 1 << 29))

    def keep(pool: LocalPool) -> None:
        while not ended.is_set():
            entry = freshened(random.choice(entries), next(numbers))
            try:
                pool.submit(
                    entry.task, Submission(code=entry.code), Options(device="cuda")
                ).result()
            except JudgeError:  # as they are when it ends
                continue
            done.append(entry.name)

    with ExitStack() as stack:
        pools = [stack.enter_context(LocalPool()) for _ in range(LOAD_POOLS)]
        for pool in pools:
            pool.device("cuda")
        stack.callback(ended.set)  # before the pools are closed
        for number in range(LOAD):
            threading.Thread(target=keep, args=(pools[number % LOAD_POOLS],), daemon=True).start()
        yield done


def load_rows(quiet: Judgements, under_load: Judgements, others: int, results: Results) -> None:
    """Speedups under load over quiet ones."""
    ratios: list[float] = []
    for name, judgements in under_load.items():
        before, values = speedups(quiet.get(name, ())), speedups(judgements)
        if before and values:
            ratios.append(statistics.median(values) / statistics.median(before))
            row = plain_row(
                f"speedup_under_load: {name}", ratios[-1], "times the quiet one", n=len(values)
            )
            results.put(row | {"judged": len(judgements), "quiet": len(before)})
    if ratios:
        furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
        results.put(plain_row("speedup_under_load", furthest, "times the quiet one", n=len(ratios)))
    results.put(plain_row("speedup_under_load: others judged meanwhile", others))


def quiet_rows(
    pool: LocalPool, options: argparse.Namespace, truths: dict[str, list[float]], results: Results
) -> Judgements:
    """The rows without load; returns the judgements."""
    device, how = options.device, Options(device=options.device)
    kernels = chosen(options)
    judged = judged_in_turn(pool, kernels, how, options.repeats, options.seconds, options.at_once)
    if "cv" in options.rows:
        cv_rows(judged, results)
    if "stage" in options.rows:
        stage_rows(judged, results)
    if "coverage" in options.rows and device == "cuda":
        coverage_rows(judged, truths, device, results)
    return judged


def judged_on_cpu(options: argparse.Namespace) -> Judgements:
    """Judgements of each file, beside busy loops."""
    end, judged = time.monotonic() + options.seconds, dict[str, list[Judged]]()
    with busy_loops(options.beside):
        for done in range(0, options.repeats, ROUNDS):
            count, left = min(ROUNDS, options.repeats - done), end - time.monotonic()
            with LocalPool() as pool:
                few = judged_in_turn(pool, chosen(options), Options(device="cpu"), count, left)
            for name, judgements in few.items():
                judged.setdefault(name, []).extend(judgements)
    return judged


def rows_on_cpu(judged: Judgements, beside: int, results: Results) -> None:
    """How much speedups vary, what their intervals contain, and how many files are timed."""
    where = f", beside {beside} busy loops" if beside else ""
    totals: dict[str, list[float]] = {"coverage": [], "half_width": [], "timed": []}
    for name, judgements in judged.items():
        values, truth = speedups(judgements), statistics.median(speedups(judgements))
        outcomes = [each.outcome for each in judgements]
        ends = [each.speedup_interval for each in outcomes if each.speedup_interval]
        inside = [low <= truth <= high for low, high in ends]
        sides = [max(truth_of - low, high - truth_of) / truth_of
                 for truth_of, (low, high) in zip(values, ends, strict=True)]  # fmt: skip
        timed = statistics.mean(each.kind == "timed" for each in outcomes)
        spread = statistics.stdev(values) / truth if len(values) > 1 else None
        row = plain_row(f"coverage: {name}{where}", statistics.mean(inside), "share", len(values))
        results.put(row | {
            "spread": spread, "speedup": truth, "half_width": statistics.median(sides),
            "timed": timed,
            "longest_call": max(
                max(each.reference_seconds or 0.0, each.submission_seconds or 0.0)
                for each in outcomes
            ),
        })  # fmt: skip
        totals["coverage"] += inside
        totals["half_width"] += sides
        totals["timed"].append(timed > 0.5)
    for key, values in totals.items():
        middle = statistics.median if key == "half_width" else statistics.mean
        results.put(plain_row(f"{key}{where}", middle(values), "share", len(values)))


def chosen(options: argparse.Namespace) -> list[Kernel]:
    """The kernels that are judged."""
    kernels = fixed_kernels(options.device)
    return (
        [each for each in kernels if each.name in LOADED] if options.rows == ["load"] else kernels
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    rows = ("cv", "coverage", "stage", "load")
    parser.add_argument("--rows", nargs="+", default=list(rows), choices=rows)
    parser.add_argument(
        "--repeats", type=int, default=25, help="judgements of each kernel without load"
    )
    parser.add_argument("--at-once", type=int, default=1, help="concurrent judgements without load")
    parser.add_argument("--beside", type=int, default=0, help="busy loops, on a CPU")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device, truths = options.device, dict[str, list[float]]()
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("timing_fidelity.py --device cuda needs a CUDA device")
    if "coverage" in options.rows and device == "cuda":
        truths = true_speedups(chosen(options))  # before the judge has the device
    if device == "cpu":
        with LocalPool() as pool:
            info = pool.device(device)
        results = Results(options.json, device_name(info), info.versions)
        rows_on_cpu(judged := judged_on_cpu(options), options.beside, results)
        results.print_all()
        sys.exit(len(judged) < len(chosen(options)))
    with LocalPool() as pool:
        info = pool.device(device)
        results = Results(options.json, device_name(info), info.versions)
        quiet = quiet_rows(pool, options, truths, results)
        if "load" in options.rows:
            kernels = [each for each in chosen(options) if each.name in LOADED]
            with loaded() as done:
                judged = judged_in_turn(
                    pool, kernels, Options(device=device), LOADED_REPEATS, options.seconds
                )
            load_rows(quiet, judged, len(done), results)
    print()
    results.print_all()
    sys.exit(len(quiet) < len(chosen(options)))


if __name__ == "__main__":
    main()
