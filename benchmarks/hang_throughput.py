"""The cost of a hanging submission to others: turns per second with and without it.

Honest submissions, as in `throughput.py`, are submitted to one warm pool at once: alone, right
after one that hangs in its first call, and right after one that hangs in a later call. On a GPU
other kernels are queued behind the hanging one. The drop is that of the median rate. Exits with 1
and a list if any verdict is wrong.

    python benchmarks/hang_throughput.py [--device cpu|cuda] [--count 10] [--repeats 2] \\
        [--json FILE]
"""

import argparse
import statistics
import sys
from pathlib import Path

from honest import Entry, filled_up
from resultfile import Results, device_name, median_row, plain_row
from throughput import KINDS, PROBLEMS, mixed, run, warm_up, wrong

from kevin_env.judge import Options, Submission
from kevin_env.parsing import as_submission
from kevin_env.pools.local import LocalPool

COUNTS, REPEATS = {"cpu": 4, "cuda": 10}, {"cpu": 1, "cuda": 2}
CALLS = {"in the first call": 1, "in a later call": 2}
HANGS = """
right, calls = ModelNew.forward, []
def forward(self, *inputs):
    calls.append(inputs)
    while len(calls) == {at}:
        if torch.cuda.is_available():
            torch.cuda._sleep(1 << 40)
            break
    return right(self, *inputs)
ModelNew.forward = forward
"""


def chosen(device: str, count: int) -> list[Entry]:
    """`count` honest submissions; on a CPU only of the small problems of our corpus."""
    entries = filled_up(KINDS[device], PROBLEMS, device)
    return mixed(
        [each for each in entries if device != "cpu" or each.problem.endswith(".py")], count
    )


def rate(
    pool: LocalPool, entries: list[Entry], device: str, hang: str
) -> tuple[float, list[str], float]:
    """Honest turns per second, wrong verdicts, and seconds of the hanging submission."""
    task = entries[0].task
    code = as_submission(task.source) + HANGS.format(at=CALLS[hang]) if hang else ""
    hung = pool.submit(task, Submission(code=code), Options(device=device)) if hang else None
    wall, judged = run(pool, entries, device)
    faults, seconds = wrong(judged), 0.0
    if hung is not None:
        judgement = hung.result()
        seconds = judgement.seconds.load + judgement.seconds.verify
        if judgement.outcome.kind != "timeout":
            faults.append(f"hangs {hang}: {judgement.outcome.category}/{judgement.outcome.kind}")
    return len(judged) / wall, faults, seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--count", type=int, help="honest submissions: by default 10 on a GPU, 4 on a CPU"
    )
    parser.add_argument(
        "--repeats", type=int, help="of each hang: by default 2 on a GPU, 1 on a CPU"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    entries = chosen(options.device, options.count or COUNTS[options.device])
    rates, seconds = dict[str, list[float]](), dict[str, list[float]]()
    faults = list[str]()
    with LocalPool() as pool:
        info = pool.device(options.device)
        warm_up(pool, entries, [options.device])
        for hang in ("", *CALLS) * (options.repeats or REPEATS[options.device]) + ("",):
            print(f"a submission hangs {hang}" if hang else "no submission hangs", flush=True)
            measured, wrongs, spent = rate(pool, entries, options.device, hang)
            rates.setdefault(hang, []).append(measured)
            seconds.setdefault(hang, []).append(spent)
            faults += wrongs
    results = Results(options.json, device_name(info), info.versions)
    usual = rates.pop("")
    results.report(median_row("no hang", usual, "turns/s"))
    for hang, measured in rates.items():
        results.report(median_row(f"hang {hang}", measured, "turns/s"))
        results.report(
            plain_row(
                f"hang {hang}: drop",
                1 - statistics.median(measured) / statistics.median(usual),
                "share",
            )
        )
        results.report(median_row(f"hang {hang}: on the device", seconds[hang]))
    for fault in faults:
        print(f"WRONG VERDICT: {fault}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
