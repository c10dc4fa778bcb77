"""Nsight Compute: its commands, and its tables, reduced to the kernel that takes most time."""

import csv
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kevin_env.outcome import Bound, HotLine, Metric, NcuDigest, Stall
from kevin_env.profile.kernels import shorten
from kevin_env.profile.tools import Runner, refusal
from kevin_env.rules.vocabulary import is_library

LINES = 2
PAGE_SECONDS = 10.0
"""For a table: 0.8 s on an H200."""
_LONGEST_LINE = 200_000
_MOST_ROWS = 50_000
SAMPLES = "group:smsp__pcsamp_warp_stall_reasons"
"""Samples of hot lines and stall reasons; also the name of the column.

The section `SourceCounters` has more, from counters in the kernel's code, but with it a call of 25
ms took 10 s instead of 3 on an H200.
"""
_LINE, _TEXT = ("Line No", "#", "Line"), "Source"


def read_rows(text: str) -> list[list[str]]:
    """The rows whose lines begin with a quotation mark; other output in between is left out."""
    lines = [
        line for line in text.splitlines() if line.startswith('"') and len(line) <= _LONGEST_LINE
    ]
    rows: list[list[str]] = []
    for line in lines[:_MOST_ROWS]:
        try:
            rows += csv.reader([line.replace("\0", "")])
        except csv.Error:  # a field that is too long
            continue
    return rows


def number(cell: str) -> float | None:
    """`1,234.5` as a number; None for what is none, and for infinities."""
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def hot_lines(text: str, kernel: str) -> tuple[HotLine, ...]:
    """The lines with most samples in what `--page source --print-source cuda,sass --csv` prints.

    Args:
        text: Blocks of a file, a function, a head and one row for each line; rows of machine code
            have no line number.
        kernel: The shortened name of the one whose lines are wanted.
    """
    samples: dict[tuple[str, int], tuple[float, str]] = {}
    file, wanted, names = "", False, list[str]()
    for row in read_rows(text):
        if row[0] == "File Path" and len(row) > 1:
            file, names = row[1], []
        elif row[0] in ("Function Name", "Kernel Name") and len(row) > 1:
            wanted, names = shorten(row[1]) == kernel, []
        elif row[0] in _LINE:
            names = row
        elif wanted and names:
            _count(samples, row, names, file)
    total = sum(count for count, _ in samples.values())
    top = sorted(samples, key=lambda place: -samples[place][0])[:LINES]
    return tuple(
        HotLine(
            line=at[1],
            file=at[0].rpartition("/")[2][:80],
            text=samples[at][1],
            share=samples[at][0] / total,
        )
        for at in top
        if total > 0 and samples[at][0] > 0
    )


def _count(
    samples: dict[tuple[str, int], tuple[float, str]], row: list[str], names: list[str], file: str
) -> None:
    line = number(row[0])
    column = names.index(SAMPLES) if SAMPLES in names else len(row)
    if line is None or line < 1 or line > 1e9 or column >= len(row) or _TEXT not in names:
        return
    source = row[names.index(_TEXT)] if names.index(_TEXT) < len(row) else ""
    before, _ = samples.get((file, int(line)), (0.0, ""))
    count = max(number(row[column]) or 0.0, 0.0)
    samples[file, int(line)] = (before + count, " ".join(source.split())[:100])


LAUNCHES = 12
"""Launches of one call that are looked at."""
LATENCY = 0.4
"""Share of what the device sustains below which neither memory nor arithmetic is what limits."""
STALLS = 3
DURATION = "gpu__time_duration.sum"
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
_COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"

METRICS: Mapping[str, tuple[str, str]] = {
    "memory throughput": (_MEMORY, "fraction"),
    "compute throughput": (_COMPUTE, "fraction"),
    "DRAM throughput": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "fraction"),
    "DRAM bytes": ("dram__bytes.sum", "bytes"),
    "L1 hit rate": ("l1tex__t_sector_hit_rate.pct", "fraction"),
    "L2 hit rate": ("lts__t_sector_hit_rate.pct", "fraction"),
    "sectors a global load": (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "count",
    ),
    "shared memory bank conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "count"),
    "local memory bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", "bytes"),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", "fraction"),
    "theoretical occupancy": ("sm__maximum_warps_per_active_cycle_pct", "fraction"),
    "issue slots busy": ("smsp__issue_active.avg.pct_of_peak_sustained_active", "fraction"),
    "FMA pipe": ("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "fraction"),
    "tensor pipe": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "fraction"),
    "registers a thread": ("launch__registers_per_thread", "count"),
    "waves": ("launch__waves_per_multiprocessor", "count"),
}
"""What decides, by our names: its metric and its unit."""
_STALL = "smsp__pcsamp_warps_issue_stalled_"
_NOT_STALLED = ("selected", "not_selected")
_UNITS: Mapping[str, Mapping[str, float]] = {
    "fraction": {"%": 0.01},
    "bytes": {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "KB": 1e3, "MB": 1e6, "GB": 1e9},
}
_TIMES = {
    **{"": 1e-9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    **{"nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0},
}


def command(
    tool: str, report: str, target: Iterable[str], missing: Collection[str] = ()
) -> list[str]:
    """The command that profiles the target into a report; kernels between the target's marks alone.

    Clocks are left as they are: locking them takes privileges and would disturb others on the
    device. Metrics that are `missing` on the device are left out: with one of those, Nsight
    Compute measures nothing.
    """
    names = (DURATION, *(name for name, _ in METRICS.values()), SAMPLES)
    wanted = ",".join(name for name in names if name not in missing)
    return [
        tool, "--config-file", "off", "--target-processes", "application-only",
        "--profile-from-start", "off", "--clock-control", "none",
        "--launch-count", str(LAUNCHES), "--metrics", wanted,
        "--import-source", "yes", "--force-overwrite", "--export", report, *target,
    ]  # fmt: skip


def show(tool: str, report: str, page: str) -> list[str]:
    """The command that prints a table of a report.

    `raw` has one row per kernel, `source` its hot lines.
    """
    extra = ["--print-source", "cuda,sass"] if page == "source" else ["--print-units", "base"]
    return [tool, "--config-file", "off", "--import", report, "--page", page, "--csv", *extra]


def read_tables(runner: Runner, tool: str, report: str, output: str) -> NcuDigest | str:
    """A digest of a report, or why there is none.

    Args:
        runner: Where the report is.
        tool: Nsight Compute.
        report: Its path, without the suffix.
        output: What the tool printed while it wrote the report.
    """

    def table(page: str) -> str:
        return runner.run(show(tool, f"{report}.ncu-rep", page), PAGE_SECONDS, {}).output

    found = digest(read_raw(table("raw")))
    if found is None:
        return refusal(output) or "it saw no kernel in a call"
    return found.model_copy(update={"lines": hot_lines(table("source"), found.kernel)})


def missing_in(text: str) -> set[str]:
    """Those of our metrics that Nsight Compute reports as unknown."""
    known = set(
        re.findall(r"Failed to find metric (?:regex:\^)?((?:group:)?[a-z0-9_]{3,80})", text)
    )
    return {
        name
        for name in (SAMPLES, *(name for name, _ in METRICS.values()))
        if name.partition(".")[0] in known
    }


@dataclass(frozen=True)
class Launch:
    """One profiled launch: kernel, seconds, and each metric's value and unit by its name."""

    kernel: str
    seconds: float
    values: Mapping[str, tuple[float, str]]


def read_raw(text: str) -> list[Launch]:
    """The launches in the output of `--page raw --csv`.

    It has a row of names, one of units, and one per launch.
    """
    rows = read_rows(text)
    start = next((i for i, row in enumerate(rows) if {"Kernel Name", DURATION} <= {*row}), None)
    if start is None or len(rows) < start + 3:
        return []
    names, units = rows[start], rows[start + 1]
    launches: list[Launch] = []
    for row in rows[start + 2 :]:
        cells = dict(zip(names, zip(row, units, strict=False), strict=False))
        values = {
            name: (value, unit)
            for name, (cell, unit) in cells.items()
            if (value := number(cell)) is not None
        }
        duration = values.get(DURATION)
        if duration is not None and duration[1] in _TIMES and duration[0] >= 0:
            seconds = duration[0] * _TIMES[duration[1]]
            launches.append(Launch(cells["Kernel Name"][0], seconds, values))
    return launches


def digest(launches: list[Launch]) -> NcuDigest | None:
    """What limits the kernel that takes most of the time; None without launches."""
    if not launches or (total := sum(each.seconds for each in launches)) <= 0:
        return None
    seconds: dict[str, float] = {}
    for each in launches:
        seconds[each.kernel] = seconds.get(each.kernel, 0.0) + each.seconds
    hot = max(seconds, key=lambda name: seconds[name])
    longest = max((each for each in launches if each.kernel == hot), key=lambda each: each.seconds)
    own = sum(each.seconds for each in launches if not is_library(each.kernel))
    return NcuDigest(
        kernel=shorten(hot),
        own=not is_library(hot),
        seconds=total,
        share=min(1.0, seconds[hot] / total),
        coverage=min(1.0, own / total) if len(launches) < LAUNCHES else None,
        bound=_bound(longest),
        metrics=tuple(metric for name in METRICS if (metric := _metric(longest, name)) is not None),
        stalls=_stalls(longest),
    )


def _metric(launch: Launch, name: str) -> Metric | None:
    metric, unit = METRICS[name]
    reading = launch.values.get(metric)
    if reading is None:
        return None
    factor = _UNITS.get(unit, {}).get(reading[1], 1.0)
    return Metric.model_validate({"name": name, "value": reading[0] * factor, "unit": unit})


def _bound(launch: Launch) -> Bound:
    memory, compute = (launch.values.get(name, (0.0, "%"))[0] / 100 for name in (_MEMORY, _COMPUTE))
    if max(memory, compute) < LATENCY:
        return "latency"
    return "memory" if memory >= compute else "compute"


def _stalls(launch: Launch) -> tuple[Stall, ...]:
    """The reasons with most samples, each with its share of all samples in which a warp waited."""
    samples: dict[str, float] = {}
    for name, (value, _) in launch.values.items():
        reason = name.removeprefix(_STALL)
        if (
            reason != name
            and not reason.endswith("not_issued")
            and reason not in _NOT_STALLED
            and value > 0
        ):
            samples[reason[:40]] = value
    total = sum(samples.values())
    top = sorted(samples, key=lambda reason: -samples[reason])[:STALLS]
    return tuple(
        Stall(reason=reason.replace("_", " "), share=samples[reason] / total) for reason in top
    )
