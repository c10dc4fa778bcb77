"""How many turns a second one warm pool does, when many different submissions are handed in at once.

Submissions are honest kernels (Triton on a GPU, C++ on a CPU), each with a token of its own in everything that is
compiled, so that no cache can help; every problem is judged once with its reference before. All verdicts have to be
right: else the script says which are not, and exits with 1. With `--devices 2`, as many submissions a device are
handed to one pool of two devices after that, and the row `2_gpu_scaling` (`four_gpu_scaling` with four) is its rate
over that of one device in the same run.

    python benchmarks/throughput.py [--device cpu|cuda] [--count 64] [--devices N] [--json FILE]
"""

import argparse
import random
import statistics
import sys
import time
from concurrent.futures import Future, as_completed
from pathlib import Path

from honest import Entry, filled_up, freshened, is_right
from machine import Busy
from resultfile import Results, Row, device_name, median_row, plain_row

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.pool import LocalPool
from kevin_env.parsing import as_submission

KINDS = {"cpu": "cpp", "cuda": "triton"}
COUNTS = {"cpu": 8, "cuda": 64}
WORDS = {4: "four"}
PROBLEMS = 10
"""Of a small number of submissions, as many problems as that are among them where the corpus has them."""
STAGES = ("queue", "build", "load", "verify", "time")
Judged = tuple[Entry, Judgement | JudgeError]


def mixed(entries: list[Entry], count: int) -> list[Entry]:
    """So many of them, again from the first when they are used up, neighbours of different problems."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.problem, []).append(entry)
    ranked = sorted((place, problem) for problem, of in groups.items() for place in range(len(of)))
    order = [groups[problem][place] for place, problem in ranked]
    return [order[number % len(order)] for number in range(count)]


def warm_up(pool: LocalPool, entries: list[Entry], devices: list[str]) -> None:
    """Every problem once on every device."""
    tasks = {entry.problem: entry.task for entry in entries}
    futures = [
        pool.submit(task, Submission(code=as_submission(task.source)), Options(device=device))
        for device in devices
        for task in tasks.values()
    ]
    for done, future in enumerate(as_completed(futures), 1):
        future.result()
        print(f"\rwarm: {done} of {len(futures)}", end="", flush=True)
    print()


def run(pool: LocalPool, entries: list[Entry], device: str) -> tuple[float, list[Judged]]:
    """Seconds from the first submission to the last verdict, and all verdicts."""
    seed = random.SystemRandom().randrange(1, 1 << 29)
    fresh = [freshened(entry, seed + number) for number, entry in enumerate(entries)]
    options = Options(device=device, require_sandbox=True)
    asked: dict[Future[Judgement], Entry] = {}
    start = time.perf_counter()
    for entry in fresh:
        asked[pool.submit(entry.task, Submission(code=entry.code), options)] = entry
    judged: list[Judged] = []
    for future in as_completed(asked):
        seconds, entry = time.perf_counter() - start, asked[future]
        try:
            judged.append((entry, future.result()))
        except JudgeError as error:
            judged.append((entry, error))
        print(f"{seconds:7.2f} s  {len(judged):4} of {len(asked)}  {_ending(judged[-1])}  {entry.name}", flush=True)
    return time.perf_counter() - start, judged


def wrong(judged: list[Judged]) -> list[str]:
    """Those that did not end as they must."""
    return [
        f"{entry.name}: {_ending((entry, result))}"
        for entry, result in judged
        if isinstance(result, JudgeError) or not is_right(entry, result)
    ]


def rows_of(name: str, wall: float, judged: list[Judged], busy: Busy) -> list[Row]:
    """The rate of right verdicts, and what tells where their time went."""
    verdicts = [result for entry, result in judged if isinstance(result, Judgement) and is_right(entry, result)]
    noisy = sum(each.outcome.kind == "too_noisy" for each in verdicts)
    problems = len({entry.problem for entry, _ in judged})
    rows = [
        plain_row(name, len(verdicts) / wall, "turns/s", n=len(verdicts)) | {"problems": problems, "seconds": wall},
        plain_row(f"{name}: right verdicts", len(verdicts), n=len(judged)),
        plain_row(f"{name}: too noisy to time", noisy, n=len(verdicts)),
        plain_row(f"{name}: cores busy", busy.cores, "share"),
    ]
    if busy.gpus:
        rows.append(plain_row(f"{name}: device busy", statistics.mean(busy.gpus), "share", n=len(busy.gpus)))
    stages = [each.seconds.model_dump() for each in verdicts]
    return rows + [median_row(f"{name}: {stage}", [each[stage] for each in stages]) for stage in STAGES if stages]


def measured(pool: LocalPool, entries: list[Entry], devices: list[str], results: Results, name: str) -> list[str]:
    """Runs and adds the rows; gives what went wrong."""
    choice = devices[0] if len(devices) == 1 else f"cuda:{','.join(each.partition(':')[2] for each in devices)}"
    busy = Busy(len(devices) if devices[0] != "cpu" else 0)
    with busy.watched():
        wall, judged = run(pool, entries, choice)
    results.tell(*rows_of(name, wall, judged, busy))
    return wrong(judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=int, help="submissions a device: 64 on a GPU, 8 on a CPU when left out")
    parser.add_argument("--devices", type=int, default=1, help="how many GPUs the pool spreads over at last")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    count = options.count or COUNTS[options.device]
    entries = filled_up(KINDS[options.device], PROBLEMS, options.device)
    names = ["cpu"] if options.device == "cpu" else [f"cuda:{number}" for number in range(options.devices)]
    with LocalPool() as pool:
        info = pool.device(names[0])
        results = Results(options.json, device_name(info, len(names)), info.versions)
        one = f"throughput_{count}"
        warm_up(pool, mixed(entries, count), names)
        faults = measured(pool, mixed(entries, count), names[:1], results, one)
        if len(names) > 1:
            all_of_them = f"throughput_{count * len(names)}_on_{len(names)}"
            faults += measured(pool, mixed(entries, count * len(names)), names, results, all_of_them)
            rate = results.value(all_of_them) / results.value(one)
            results.tell(plain_row(f"{WORDS.get(len(names), len(names))}_gpu_scaling", rate, "times one GPU"))
    for fault in faults:
        print(f"WRONG VERDICT: {fault}")
    sys.exit(bool(faults))


def _ending(judged: Judged) -> str:
    _, result = judged
    if isinstance(result, JudgeError):
        return f"JudgeError: {result}"
    stages = " ".join(f"{stage} {getattr(result.seconds, stage):5.2f}" for stage in STAGES)
    return f"{result.outcome.category}/{result.outcome.kind:9}  {stages}"


if __name__ == "__main__":
    main()
