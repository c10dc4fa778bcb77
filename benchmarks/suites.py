"""How long `make test` and `make test-all` take after installation, by folder, and what fails.

    python benchmarks/suites.py [--checkout FOLDER] [--name after] [--target test] [--runs 1] \\
        [--beside 0] [--json FILE]

Each run is a row of its own, which is written when the run ends and is never replaced: a flaky test
shows as a row that names it. `--beside 2` runs two busy loops meanwhile. Pass another checkout and
the name `before` to compare revisions on the same machine. Since the speed of virtual machines
varies, a single-core loop is timed before each run. Exits with 1 if a run failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from resultfile import Results, Row, known_rows, plain_row

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("test", "test-all")
BUSY = "while True: pass"


@dataclass(frozen=True)
class Run:
    """One run of a target: wall seconds, failed tests, and tests and their seconds by folder."""

    seconds: float
    failed: tuple[str, ...]
    tests: Counter[str]
    spent: Mapping[str, float]


def run(checkout: Path, target: str) -> Run:
    """Runs a target once.

    Raises:
        SystemExit: when it ends before its tests do.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        start = time.monotonic()
        done = subprocess.run(
            ["make", target], cwd=checkout, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTEST_ADDOPTS": f"--junitxml={report}"},
        )  # fmt: skip
        seconds = time.monotonic() - start
        if not report.exists():
            raise SystemExit(f"make {target} failed:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed, tests = list[str](), Counter[str]()
    spent = defaultdict[str, float](float)
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.attrib['classname']}::{case.attrib['name'].partition('@')[0]}")
        if case.find("skipped") is None:
            tests[folder_of(case)] += 1
            spent[folder_of(case)] += float(case.attrib["time"])
    if done.returncode and not failed:
        failed.append(f"make {target}: exit code {done.returncode}")
    return Run(seconds, tuple(failed), tests, spent)


def folder_of(case: ElementTree.Element) -> str:
    """`tests/judge` of a test in `tests.judge.test_pool`; `tests` of one in `tests.test_env`."""
    return "/".join(case.attrib["classname"].split(".")[:-1][:2])


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Runs this many processes that never wait."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def loop_seconds() -> float:
    """Seconds of 20 million additions in Python: how fast a core is now."""
    start, total = time.perf_counter(), 0
    for number in range(20_000_000):
        total += number
    return time.perf_counter() - start


def rows_of(name: str, number: int, ran: Run, loop: float) -> list[Row]:
    """The row of a run; those of the folders are the last run's."""
    failed = f", {len(ran.failed)} failed: {', '.join(ran.failed)}" if ran.failed else ""
    print(
        f"{name}, run {number}: {ran.seconds:.0f} s, {ran.tests.total()} tests{failed}", flush=True
    )
    facts = {
        "tests": ran.tests.total(),
        "failed": list(ran.failed),
        "loop": round(loop, 3),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    rows = [plain_row(f"{name}, run {number}", round(ran.seconds, 1), "s") | facts]
    for folder in sorted(ran.tests):
        seconds = round(ran.spent[folder], 1)
        rows.append(plain_row(f"{name}: {folder}", seconds, "s", n=ran.tests[folder]))
    return rows


def main() -> None:
    """Runs the targets and writes their rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, default=ROOT)
    parser.add_argument("--name", default="after", help="what the rows' names begin with")
    parser.add_argument("--target", choices=TARGETS, action="append", help="by default both")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--beside", type=int, default=0, help="busy loops that run meanwhile")
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
    failed = False
    for target in options.target or TARGETS:
        name = f"{options.name}: make {target}"
        name += f" beside {options.beside} busy loops" if options.beside else ""
        for _ in range(options.runs):
            earlier = [
                each for each in known_rows(options.json) if each.startswith(f"{name}, run ")
            ]
            loop = loop_seconds()
            with busy(options.beside):
                ran = run(options.checkout, target)
            results.put(*rows_of(name, len(earlier) + 1, ran, loop))
            failed = failed or bool(ran.failed)
    sys.exit(failed)


if __name__ == "__main__":
    main()
