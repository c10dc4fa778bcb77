"""The judge's clock against CUDA events inside the launching process, CUPTI and optionally ncu.

For each kernel and its reference: the time of a call as verdicts measure it (the chain; the median
of `--repeats` judgements, each in a fresh process), and as `inside.py` measures calls with a cold
L2. Like the chain, events include the gaps between the kernels of a call; CUPTI and ncu measure the
kernels' durations.

`beyond_events`, `beyond_cupti`, `beyond_ncu`: the largest difference between chain and tool in
microseconds, beyond 1 % of the tool's time. Rows per call have all times in seconds. Needs a CUDA
device.

    python benchmarks/clock.py [--repeats N] [--only PART] [--ncu] \\
        [--json benchmarks/results/clock.h200.json]
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch
from kernels import KERNELS, Judged, Times, judged_in_turn, time_by_ncu, times_inside
from resultfile import Results, device_name, plain_row

from kevin_env.judge import Options
from kevin_env.pools.local import LocalPool

ALLOWED = 0.01
"""Relative to the tool's time."""
TOOLS = ("events", "cupti", "ncu")


def beyond(chain: float, tool: float) -> float:
    """The difference between chain and tool in microseconds, beyond the allowed share."""
    return max(0.0, abs(chain - tool) - ALLOWED * tool) * 1e6


def report_kernel(kernel: str, judgements: list[Judged], inside: Times, results: Results) -> None:
    """The rows of one kernel, and the largest differences so far."""
    for side, tools in inside.items():
        chains = [
            seconds for each in judgements if (seconds := getattr(each.outcome, f"{side}_seconds"))
        ]
        if not chains:
            continue
        chain, name = (
            statistics.median(chains),
            kernel if side == "submission" else f"{kernel}, reference",
        )
        print(f"{name:50} chain {chain * 1e6:9.2f} us", end="")
        for tool, seconds in tools.items():
            print(f"  {tool} {seconds * 1e6:9.2f} us ({(chain - seconds) * 1e6:+6.2f})", end="")
            row = plain_row(f"beyond_{tool}: {name}", beyond(chain, seconds), "us", n=len(chains))
            results.put(
                row | {"chain": chain, "chain_from_to": [min(chains), max(chains)], **tools}
            )
        print(flush=True)
    for tool in TOOLS:
        results.put_largest(f"beyond_{tool}", f"beyond_{tool}: ")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=120, help="after which no further judgement begins"
    )
    parser.add_argument("--only", default="", help="a part of the kernel names")
    parser.add_argument(
        "--ncu", action="store_true", help="also run ncu: about ten seconds per kernel"
    )
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("clock.py needs a CUDA device")
    kernels = [each for each in KERNELS if options.only in each.name]
    if not kernels:
        parser.error(
            f"no kernel is called {options.only}: {', '.join(each.name for each in KERNELS)}"
        )
    inside = times_inside(kernels, "cupti")  # before the judge has the device
    for each in kernels if options.ncu else ():
        if seconds := time_by_ncu(each):
            inside[each.name]["submission"]["ncu"] = seconds
    with LocalPool() as pool:
        info = pool.device("cuda")
        results = Results(options.json, device_name(info), info.versions)
        judged = judged_in_turn(
            pool, kernels, Options(device="cuda"), options.repeats, options.seconds
        )
    for name, judgements in judged.items():
        report_kernel(name, judgements, inside[name], results)
    print()
    results.print_all()
    sys.exit(len(judged) < len(kernels))


if __name__ == "__main__":
    main()
