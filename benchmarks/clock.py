"""The judge's clock against CUDA events inside the process that launches the kernels.

For each kernel and size: the gated call (window minus the null kernel's) and the burst, both as the product takes
them, and what the candidate, which is trusted here, measures itself with a cold L2: events round one call after a
flush, events round calls in a row that rotate through more inputs than the L2 holds (one call's time as for a burst),
and the kernels' own durations as CUPTI tells them. A gated call has the host's launch in it, less the null kernel's: a
candidate notes it in the very windows that are timed. `gated beyond` is what a gated call is beyond that launch and
events round one call, on the whole: of several rounds in each trial. Needs a CUDA device.

    python benchmarks/clock.py [--repeats N] [--json benchmarks/results/clock.h200.json]
"""

import argparse
import statistics
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from kernels import INSIDE, SIZES, as_noted, kernel_case, noted_calls, noted_null, times_inside
from resultfile import Row, device_name, median_row, plain_row, write_result

from kevin_env.judge import contest as contests
from kevin_env.judge.answer import Answer
from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.burst import take_bursts
from kevin_env.judge.contest import Contest
from kevin_env.judge.device import inform
from kevin_env.judge.gate import Gate, Player
from kevin_env.judge.measure import make_ready
from kevin_env.judge.nullkernel import HOLD, construct_null
from kevin_env.judge.partners import PARTNER_SECONDS
from kevin_env.judge.pauses import awake
from kevin_env.judge.processors import on_its_own
from kevin_env.judge.timing import speedup_of
from kevin_env.judge.trial import Trial
from kevin_env.judge.unverified import Unverified
from kevin_env.judge.worker import Worker
from kevin_env.problem import Problem

passes: list[tuple[Worker, int, int, float]] = []
"""Through any gate: whose, from when to when by `time.perf_counter_ns`, and how long its window was in seconds."""
ROUNDS = 3
"""Of gated calls in a trial, where a judgement has one at most: what they are beyond is less than one varies by."""


@dataclass(frozen=True)
class Told:
    """What one trial tells of a call, in seconds: the gate, its launch less the null kernel's, and a burst."""

    gated: float
    launch: float
    burst: float | None


def measure(bench: Bench, kernel: str, rows: int, columns: int, repeats: int) -> list[Row]:
    """Rows of the result: events, then what `repeats` trials tell, their medians with the spread (CV)."""
    problem, code = kernel_case(kernel, rows, columns)
    inside = dict(zip(INSIDE, times_inside(bench, problem, code), strict=True))
    told = [one_trial(bench, problem, code) for _ in range(repeats)]
    figures = {
        **{name: [seconds] for name, seconds in inside.items()},
        "gated": [each.gated for each in told],
        "launch in gated windows": [each.launch for each in told],
        "burst": [each.burst for each in told if each.burst is not None],
    }
    beyond = statistics.median(each.gated - each.launch for each in told) - inside["events, one cold call"]
    return [
        *(median_row(f"{problem.id}: {name}", values) for name, values in figures.items() if values),
        plain_row(f"{problem.id}: gated beyond", beyond, "s", len(told)),
    ]


def one_trial(bench: Bench, problem: Problem, code: str) -> Told:
    """One contest, as the product has it."""
    worker = bench.take()
    trial = Trial(bench, problem, Options(device="cuda"), "00" * 16, worker)
    try:
        trial.build(as_noted(code))
        unverified = Unverified(trial)
        with ExitStack() as partners:
            with bench.lease.shared():
                assert trial.screen() is None
                contest = Contest.prepare(trial, partners, unverified)
                for _ in make_ready(contest):
                    pass
            with contest.still(), bench.lease.exclusive(), on_its_own(bench.place):
                unverified.use_room()
                gated = [contest.gated() for _ in range(ROUNDS)][-1]  # of all rounds
                counted = {turn.null for turn in contest.seen.turns}
                if long := len(contest.seen.fitting_gates):  # else these, the last ones
                    counted = {seconds for of, *_, seconds in passes[-long:] if of is contest.null.worker}
                with awake(worker):
                    trial.construct(worker, PARTNER_SECONDS)
                bursts = take_bursts(contest, gated, [])
            construct_null(trial, contest.null.worker, HOLD)
            unverified.compare()
            own = launch_of(worker, {turn.submission for turn in contest.seen.turns})
            null = launch_of(contest.null.worker, counted)
    finally:
        worker.close()
        trial.close()
    return Told(gated.submission, own - null, speedup_of(bursts.calls).submission if bursts else None)


def launch_of(worker: Worker, windows: Collection[float]) -> float:
    """What a call takes to launch, in seconds: the median in windows of these lengths, which are no other's."""
    noted = noted_calls(worker)
    spans = [span for of, *span, seconds in passes if of is worker and seconds in windows]
    return statistics.median(took for begin, end in spans for when, took in noted if begin <= when <= end)


def logged(call: Callable[..., Answer]) -> Callable[..., Answer]:
    """`Gate.call`, with each pass noted."""

    def logging(gate: Gate, player: Player, *given: Any, **more: Any) -> Answer:
        begin = time.perf_counter_ns()
        answer = call(gate, player, *given, **more)
        passes.append((player.worker, begin, time.perf_counter_ns(), answer.seconds))
        return answer

    return logging


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("clock.py needs a CUDA device; nothing was measured")
        return
    contests.null_code, Gate.call = noted_null, logged(Gate.call)
    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)
    info = inform(device)
    bench = Bench(device, info)
    rows: list[Row] = []
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
