"""How long `make test` and `make test-all` take after installation, and how many tests they run.

    python benchmarks/suites.py [--checkout FOLDER] [--name after] [--target test] [--runs 1] \\
        [--json FILE]

Pass another checkout and the name `before` to compare revisions on the same machine. Failed runs do
not count. Since the speed of virtual machines varies, a single-core loop is timed before each run.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from resultfile import Results, median_row, plain_row

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("test", "test-all")


def run(checkout: Path, target: str) -> tuple[float, int]:
    """Wall seconds of a target, and the tests that passed in it.

    Raises:
        SystemExit: when it fails.
    """
    start = time.monotonic()
    done = subprocess.run(
        ["make", target], cwd=checkout, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"make {target} failed:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return seconds, sum(map(int, re.findall(r"^=+ .*?(\d+) passed", done.stdout, re.MULTILINE)))


def loop_seconds() -> float:
    """Seconds of 20 million additions in Python: how fast a core is now."""
    start, total = time.perf_counter(), 0
    for number in range(20_000_000):
        total += number
    return time.perf_counter() - start


def main() -> None:
    """Runs the targets and writes their rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, default=ROOT)
    parser.add_argument("--name", default="after", help="what the rows' names begin with")
    parser.add_argument("--target", choices=TARGETS, action="append", help="by default both")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # creating the virtual environment is not measured
    subprocess.run(
        ["make", ".venv/.installed"], cwd=options.checkout, stdout=sys.stderr, check=True
    )
    versions = {
        "python": sys.version.split()[0],
        "pytest": version("pytest"),
        "processors": str(os.cpu_count()),
    }
    results = Results(options.json, "cpu", versions)
    for target in options.target or TARGETS:
        name, loops, taken = (
            f"{options.name}: make {target}",
            list[float](),
            list[tuple[float, int]](),
        )
        for _ in range(options.runs):
            loops.append(loop_seconds())
            taken.append(run(options.checkout, target))
        results.report(median_row(f"{name}, 20 million additions before it", loops))
        results.report(median_row(name, [seconds for seconds, _ in taken]))
        results.report(plain_row(f"{name}, tests passed", min(count for _, count in taken)))


if __name__ == "__main__":
    main()
