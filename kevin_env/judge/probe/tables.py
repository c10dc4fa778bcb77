"""Tables as Nsight Compute prints them: comma-separated rows between lines of other kinds."""

import csv
import math

from kevin_env.judge.probe.names import shorten
from kevin_env.profile import HotLine

LINES = 2
_LONGEST_LINE = 200_000
_MOST_ROWS = 50_000
SAMPLES = "group:smsp__pcsamp_warp_stall_reasons"
"""Tells hot lines and why warps wait; its column is called so, too. The section `SourceCounters`
tells more, from counters in the kernel's code: with it a call of 25 ms took 10 s instead of 3 on an
H200.
"""
_LINE, _TEXT = ("Line No", "#", "Line"), "Source"


def read_rows(text: str) -> list[list[str]]:
    """The rows whose lines begin with a quotation mark; what a program prints in between is left
    out.
    """
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
