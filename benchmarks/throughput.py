"""Turns per second of one warm pool with many distinct submissions at once.

`all_right`: honest kernels (Triton on a GPU, C++ on a CPU) for at least 40 problems, with unique
source text so that no cache helps; each problem has been judged and timed once before, as in the
second step of a training. `mix`: such kernels among typical failures of a policy in training, see
`MIX`.

Exits with 1 and a list if any verdict is wrong. With `--devices 2`, one pool of two devices then
gets the same number of submissions per device, and the row `2_gpu_scaling` (`four_gpu_scaling` with
four) is its rate over that of one device in the same run.

    python benchmarks/throughput.py [--device cpu|cuda] [--rows all_right mix] [--count 64] \\
        [--mix-count 256] [--devices N] [--json FILE]
"""

import argparse
import random
import statistics
import sys
import time
from concurrent.futures import Future, as_completed
from pathlib import Path

from honest import Entry, Fresh, filled_up, freshened
from machine import Busy
from resultfile import Results, Row, device_name, median_row, plain_row

from kevin_env.extract import Extracted, extract
from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.judge.api import Seconds
from kevin_env.pools.local import LocalPool
from kevin_env.turn import Verdict, begin_verdict

KINDS = {"cpu": "cpp", "cuda": "triton"}
COUNTS = {"cpu": 8, "cuda": 64}
MIX_COUNTS = {"cpu": 20, "cuda": 256}
WORDS = {4: "four"}
PROBLEMS = 10
"""Least number of problems among a small number of submissions, if the corpus has them."""
BROKEN = "import no_module_of_this_name\n"
ALTERED = """
right, calls = ModelNew.forward, []
def forward(self, *inputs):
    {instead}
    return right(self, *inputs)
ModelNew.forward = forward
"""
WRONG = """spoil = lambda each: ~each if each.dtype == torch.bool else (
        (each.float() + 1).to(each.dtype) if "float8" in str(each.dtype) else each + 1)
    return torch.utils._pytree.tree_map_only(torch.Tensor, spoil, right(self, *inputs))"""
SLOW = (
    "torch.cuda._sleep(200_000_000) if torch.cuda.is_available() else __import__('time').sleep(0.1)"
)
HANG = "torch.cuda._sleep(1 << 40) if torch.cuda.is_available() else __import__('time').sleep(1000)"
MIX = {
    "no code": (0.10, "", "format/no_code"),
    "compile error": (0.25, BROKEN, "compile/import"),
    "exception": (
        0.10,
        ALTERED.format(instead="raise RuntimeError('failed')"),
        "runtime/exception",
    ),
    "wrong values": (0.25, ALTERED.format(instead=WRONG), "correctness/values"),
    "slower than a tenth of the reference": (0.05, ALTERED.format(instead=SLOW), "correct"),
    "hang": (0.01, ALTERED.format(instead=HANG), "runtime/timeout"),
}
"""The incorrect submissions of a mix: share, code added to an honest kernel, and expected ending.
"""
NO_CODE = "I would tile the rows and keep a running maximum."
STAGES = ("queue", "build", "load", "verify", "time")
Judged = tuple[Entry, Verdict | JudgeError]


def mixed(entries: list[Entry], count: int) -> list[Entry]:
    """`count` entries, repeated if there are fewer; neighbors are of different problems."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.problem, []).append(entry)
    ranked = sorted((place, problem) for problem, of in groups.items() for place in range(len(of)))
    order = [groups[problem][place] for place, problem in ranked]
    return [order[number % len(order)] for number in range(count)]


def warm_up(pool: LocalPool, entries: list[Entry], devices: list[str]) -> None:
    """Each problem once on each device, with one of the submissions."""
    chosen = {entry.problem: entry for entry in entries}.values()
    futures = [
        pool.submit(entry.task, Submission(code=entry.code), Options(device=device))
        for device in devices
        for entry in chosen
    ]
    for done, future in enumerate(as_completed(futures), 1):
        future.result()
        print(f"\rwarm: {done} of {len(futures)}", end="", flush=True)
    print()


def mix_of(entries: list[Entry], count: int) -> list[Entry]:
    """`count` submissions in random order: each kind by its share, at least one, and the rest
    correct.
    """
    honest, mix = iter(mixed(entries, count)), list[Entry]()
    for share, added, expect in MIX.values():
        mix += [altered(next(honest), added, expect) for _ in range(max(1, round(share * count)))]
    mix += list(honest)
    random.shuffle(mix)
    return mix


def altered(entry: Entry, added: str, expect: str) -> Entry:
    """A submission with added code that changes how it ends; a reply without code if `added` is
    empty.
    """
    text = f"{entry.code}\nimport torch\n{added}" if added else NO_CODE
    return Fresh(**vars(entry) | {"expect": expect, "text": text})


def run(pool: LocalPool, entries: list[Entry], device: str) -> tuple[float, list[Judged]]:
    """Seconds from the first submission to the last verdict, and all verdicts."""
    seed = random.SystemRandom().randrange(1, 1 << 29)
    options = Options(device=device, require_sandbox=True)
    entry_of: dict[Future[Verdict], Entry] = {}
    start = time.perf_counter()
    for number, entry in enumerate(entries):
        code = entry.code if entry.code == NO_CODE else freshened(entry, seed + number).code
        submission = extract(NO_CODE) if code == NO_CODE else Submission(code=code)
        assert not isinstance(submission, Extracted)
        entry_of[begin_verdict(submission, entry.task, options, pool)] = entry
    judged: list[Judged] = []
    for future in as_completed(entry_of):
        seconds, entry = time.perf_counter() - start, entry_of[future]
        try:
            judged.append((entry, future.result()))
        except JudgeError as error:
            judged.append((entry, error))
        print(
            f"{seconds:7.2f} s  {len(judged):4} of {len(entry_of)}  {_ending(judged[-1])}  "
            f"{entry.name}",
            flush=True,
        )
    return time.perf_counter() - start, judged


def is_right(entry: Entry, verdict: Verdict) -> bool:
    """Whether a submission ended as expected. What reaches no judge ends alike on every device."""
    judgement = verdict.judgement
    return entry.met_by(verdict.outcome, judgement.device.device if judgement else "cpu")


def wrong(judged: list[Judged]) -> list[str]:
    """Submissions that did not end as expected."""
    return [
        f"{entry.name}: {_ending((entry, result))}"
        for entry, result in judged
        if isinstance(result, JudgeError) or not is_right(entry, result)
    ]


def rows_of(name: str, wall: float, judged: list[Judged], busy: Busy) -> list[Row]:
    """The rate of correct verdicts, and the time of their stages."""
    verdicts = [
        each for entry, each in judged if isinstance(each, Verdict) and is_right(entry, each)
    ]
    noisy = sum(each.outcome.kind == "too_noisy" for each in verdicts)
    problems = len({entry.problem for entry, _ in judged})
    rows = [
        plain_row(name, len(verdicts) / wall, "turns/s", n=len(verdicts))
        | {"problems": problems, "seconds": wall},
        plain_row(f"{name}: right verdicts", len(verdicts), n=len(judged)),
        plain_row(f"{name}: too noisy to time", noisy, n=len(verdicts)),
        plain_row(f"{name}: cores busy", busy.cores, "share"),
    ]
    if busy.gpus:
        rows.append(
            plain_row(f"{name}: device busy", statistics.mean(busy.gpus), "share", n=len(busy.gpus))
        )
    stages = [each.judgement.seconds.model_dump() for each in verdicts if each.judgement]
    return rows + [
        median_row(f"{name}: {stage}", [each[stage] for each in stages])
        for stage in STAGES
        if stages
    ]


def measured(
    pool: LocalPool, entries: list[Entry], devices: list[str], results: Results, name: str
) -> list[str]:
    """Measures and adds the rows; returns the faults."""
    choice = (
        devices[0]
        if len(devices) == 1
        else f"cuda:{','.join(each.partition(':')[2] for each in devices)}"
    )
    busy = Busy(len(devices) if devices[0] != "cpu" else 0)
    with busy.watched():
        wall, judged = run(pool, entries, choice)
    results.report(*rows_of(name, wall, judged, busy))
    return wrong(judged)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--rows", nargs="+", default=["all_right", "mix"], choices=("all_right", "mix")
    )
    parser.add_argument(
        "--count",
        type=int,
        help="correct submissions a device: by default 64 on a GPU, 8 on a CPU",
    )
    parser.add_argument(
        "--mix-count", type=int, help="the same for a mix: by default 256 on a GPU, 20 on a CPU"
    )
    parser.add_argument("--devices", type=int, default=1, help="number of GPUs of the last pool")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    count, many = (
        options.count or COUNTS[options.device],
        options.mix_count or MIX_COUNTS[options.device],
    )
    entries = filled_up(KINDS[options.device], max(count, PROBLEMS), options.device)
    names = (
        ["cpu"]
        if options.device == "cpu"
        else [f"cuda:{number}" for number in range(options.devices)]
    )
    faults = list[str]()
    with LocalPool() as pool:
        info = pool.device(names[0])
        results = Results(options.json, device_name(info, len(names)), info.versions)
        warm_up(pool, mixed(entries, max(count, many)), names)
        if "all_right" in options.rows:
            faults += measured(pool, mixed(entries, count), names[:1], results, "all_right")
        if "mix" in options.rows:
            faults += measured(pool, mix_of(entries, many), names[:1], results, "mix")
        if len(names) > 1:
            all_of_them = f"all_right_on_{len(names)}"
            faults += measured(
                pool, mixed(entries, count * len(names)), names, results, all_of_them
            )
            rate = results.value(all_of_them) / results.value("all_right")
            results.report(
                plain_row(f"{WORDS.get(len(names), len(names))}_gpu_scaling", rate, "times one GPU")
            )
    for fault in faults:
        print(f"WRONG VERDICT: {fault}")
    sys.exit(bool(faults))


def _ending(judged: Judged) -> str:
    _, result = judged
    if isinstance(result, JudgeError):
        return f"JudgeError: {result}"
    seconds = result.judgement.seconds if result.judgement else Seconds()
    stages = " ".join(f"{stage} {getattr(seconds, stage):5.2f}" for stage in STAGES)
    return f"{result.outcome.category}/{result.outcome.kind:9}  {stages}"


if __name__ == "__main__":
    main()
