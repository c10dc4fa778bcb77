"""Runs Nsight Compute on `one_call.py` as at a shell, and reads our figures from its output.

Uses nothing of the judge, so that the judge's profiles can be checked against it.
"""

import csv
import io
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ONE_CALL = Path(__file__).resolve().with_name("one_call.py")
SECONDS = 240
"""Timeout of `ncu`."""
LATENCY = 0.4
"""Share of the sustained rates; a kernel below it in memory and arithmetic is latency-bound."""
SECTOR = 32
"""Bytes."""
SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "Occupancy",
    "LaunchStats",
    "ComputeWorkloadAnalysis",
)
_LIMITS = "GPU Speed Of Light Throughput"
_MEMORY = "Memory Workload Analysis"
_COMMAND = "Command line profiler metrics"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_LOCAL = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
METRICS = (_SECTORS, _REQUESTS, _LOCAL, _TENSOR)
"""Metrics that no section of the details page shows."""
Page = Mapping[tuple[str, str], float]
"""Values in fractions, seconds and bytes, by section and metric."""
ROWS: Mapping[str, tuple[str, str]] = {
    "duration": (_LIMITS, "Duration"),
    "memory throughput": (_LIMITS, "Memory Throughput"),
    "compute throughput": (_LIMITS, "Compute (SM) Throughput"),
    "DRAM throughput": (_LIMITS, "DRAM Throughput"),
    "L1 hit rate": (_MEMORY, "L1/TEX Hit Rate"),
    "L2 hit rate": (_MEMORY, "L2 Hit Rate"),
    "occupancy": ("Occupancy", "Achieved Occupancy"),
    "theoretical occupancy": ("Occupancy", "Theoretical Occupancy"),
    "issue slots busy": ("Compute Workload Analysis", "Issue Slots Busy"),
    "tensor pipe": (_COMMAND, _TENSOR),
    "registers a thread": ("Launch Statistics", "Registers Per Thread"),
    "waves": ("Launch Statistics", "Waves Per SM"),
}
"""Section and metric of each of our figures on the details page."""
_UNIT = re.compile(r"([numKMGT]?)(?:s|second|B|byte|B/s|byte/s|byte/second)")
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class NoAnswer(RuntimeError):
    """There is nothing to compare; the message has the reason in one line."""


@dataclass(frozen=True)
class ByHand:
    """The figures of the longest kernel, by our names."""

    kernel: str
    figures: Mapping[str, float]

    @property
    def bound(self) -> str | None:
        """The larger of memory and compute throughput; None when either is missing."""
        memory, compute = map(self.figures.get, ("memory throughput", "compute throughput"))
        if memory is None or compute is None:
            return None
        return (
            "latency"
            if max(memory, compute) < LATENCY
            else "memory"
            if memory >= compute
            else "compute"
        )


def read_details(tool: str, submission: Path, problem: Path) -> str:
    """The details page as CSV, without extra metrics if the device lacks one.

    Raises:
        NoAnswer: if there is none.
    """
    profile = [
        tool,
        "--config-file",
        "off",
        "--target-processes",
        "application-only",
        "--profile-from-start",
        "off",
    ]
    profile += [
        "--clock-control",
        "none",
        *(word for each in SECTIONS for word in ("--section", each)),
    ]
    show = [
        tool,
        "--config-file",
        "off",
        "--import",
        "report.ncu-rep",
        "--page",
        "details",
        "--csv",
    ]
    show += ["--print-units", "base", "--print-kernel-base", "function"]
    called = [
        "--force-overwrite",
        "--export",
        "report",
        sys.executable,
        str(ONE_CALL),
        str(submission),
        str(problem),
    ]
    output = ""
    with tempfile.TemporaryDirectory() as folder:
        for metrics in (["--metrics", ",".join(METRICS)], []):
            output = run([*profile, *metrics, *called], folder)
            page = run(show, folder) if Path(folder, "report.ncu-rep").exists() else ""
            if '"ID"' in page:
                return page
            if "Failed to find metric" not in output:
                break
    lines = [line for line in output.splitlines() if line.strip()] or ["it printed nothing"]
    error = next((line for line in lines if line.startswith("==ERROR==")), lines[-1])
    raise NoAnswer(f"ncu at a shell has no result for {submission.stem}: {error}")


def run(command: list[str], folder: str) -> str:
    """The output of a command that runs in the folder."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            timeout=SECONDS,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {SECONDS} s"
    return done.stdout


def read_page(text: str) -> ByHand:
    """The longest kernel on a details page.

    Raises:
        NoAnswer: when no kernel has a duration.
    """
    launches: dict[str, dict[tuple[str, str], float]] = {}
    names: dict[str, str] = {}
    for row in csv.DictReader(io.StringIO(text[max(text.find('"ID"'), 0) :])):
        value = read_value(row.get("Metric Value") or "", row.get("Metric Unit") or "")
        if value is not None:
            names[row["ID"]] = row["Kernel Name"]
            launches.setdefault(row["ID"], {})[row["Section Name"], row["Metric Name"]] = value
    longest = max(
        launches, key=lambda each: launches[each].get(ROWS["duration"], 0.0), default=None
    )
    if longest is None or ROWS["duration"] not in launches[longest]:
        raise NoAnswer("ncu's details page has no duration of a kernel")
    return ByHand(names[longest], dict(figures_of(launches[longest])))


def read_value(text: str, unit: str) -> float | None:
    """A value in its base unit, percent as a fraction; None if it is not a number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    known = _UNIT.fullmatch(unit)
    factor = 0.01 if unit == "%" else _PREFIXES[known[1]] if known else 1.0
    return value * factor if math.isfinite(value) else None


def figures_of(page: Page) -> Iterator[tuple[str, float]]:
    """Our figures from the page, read or derived."""
    yield from ((name, page[place]) for name, place in ROWS.items() if place in page)
    rate, seconds = page.get((_MEMORY, "Memory Throughput")), page[ROWS["duration"]]
    if rate is not None:
        yield "DRAM bytes", rate * seconds
    sectors, requests, local = (
        page.get((_COMMAND, name)) for name in (_SECTORS, _REQUESTS, _LOCAL)
    )
    if sectors is not None and requests:
        yield "sectors a global load", sectors / requests
    if local is not None:
        yield "local memory bytes", local * SECTOR
