"""Lints a set of problems: the shipped ones, KernelBench's, or a folder of files in its form.

For each problem: whether the judge accepts its own reference, and which trivial answers it accepts,
on the problem's own inputs alone and with further distributions. Each device lints one problem at a
time. Rows of other problems in the file are kept, so that sets can be added one by one. With
`--seconds`, repeat the same command until none is left.

    python benchmarks/lint.py --json benchmarks/results/lint.cpu.json
    python benchmarks/lint.py --label kernelbench --device cuda:0,1 \\
        --json benchmarks/results/lint.h200.json kernelbench:
    python benchmarks/lint.py --label kernrl --device cuda \\
        --json benchmarks/results/lint.h200.json FOLDER
"""

import argparse
import math
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from resultfile import Row, common_device, device_name, known_rows, plain_row, write_result

from kevin_env.app.catalogue import named_problems
from kevin_env.app.linting import Linted, lint
from kevin_env.app.screen import make_console
from kevin_env.judge.api import DeviceInfo, Options, device_names
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem

FAILED = "judge failed"
TOTALS = {
    "fit": lambda row: row["value"] == 1,
    "own reference accepted": lambda row: row["reference"] == "accepted",
    "a trivial answer accepted": lambda row: bool(row["accepted"]),
    "a trivial answer accepted as shipped": lambda row: bool(row["accepted_as_shipped"]),
}
"""Totals over the problems of each set."""


def problem_row(label: str, linted: Linted) -> dict[str, Any]:
    """A problem as a row, whose value is 1 if there are no findings."""
    row = linted.row()
    cost = row.get("cost") or {}
    return {
        "name": f"{label}/{row['id']}",
        "value": int(row.get("ok", False)),
        "unit": "fit",
        "n": 1,
        "spread": None,
        "reference": row.get("reference", FAILED),
        "accepted": row.get("accepted", []),
        "accepted_as_shipped": row.get("accepted_as_shipped", []),
        "findings": [f"{each['check']}: {each['message']}" for each in row.get("findings", [])]
        or row.get("error"),
        "took": row.get("took"),
        **cost,
    }


def total_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each set of problems, the number with each of `TOTALS`; `n` is their number."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sets.setdefault(row["name"].split("/")[0], []).append(row)
    return [
        plain_row(f"{label}: {what}", sum(map(holds, of)), "problems", len(of))
        for label, of in sets.items()
        for what, holds in TOTALS.items()
    ]


def missing(problems: Sequence[Problem], label: str, rows: dict[str, Row]) -> list[Problem]:
    """Problems without a row, or whose judge failed."""
    known = {name for name, row in rows.items() if row["reference"] != FAILED}
    return [each for each in problems if f"{label}/{each.id}" not in known]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By name, with numbers in it as numbers, so that the order of work does not matter."""
    return sorted(
        rows,
        key=lambda row: [
            int(part) if part.isdigit() else part for part in _NUMBER.split(row["name"])
        ],
    )


_NUMBER = re.compile(r"([0-9]+)")


def ready(pool: LocalPool, choice: str) -> DeviceInfo:
    """What the judges report of the chosen devices. They start concurrently."""
    names = device_names(choice)
    with ThreadPoolExecutor(len(names)) as threads:
        return common_device(list(threads.map(pool.device, names)))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="as for `kevin-env problems lint`; by default the shipped ones"
    )
    parser.add_argument("--label", default="ours", help="name of the set in the result")
    parser.add_argument("--level", type=int)
    parser.add_argument("--device", default="auto", help="one, or several as cuda:0,1")
    parser.add_argument(
        "--seconds",
        type=float,
        help="only missing rows, and start none after this many seconds",
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    options, start = read_options(), time.monotonic()
    until = math.inf if options.seconds is None else start + options.seconds
    problems = named_problems(options.names, options.level)
    with LocalPool() as pool:
        info = ready(pool, options.device)
        rows = {
            name: row
            for name, row in known_rows(options.json, info.versions).items()
            if row["unit"] == "fit"
        }
        chosen = problems if options.seconds is None else missing(problems, options.label, rows)
        for linted in lint(
            chosen, pool, Options(device=options.device), make_console(stream="stderr"), until
        ):
            row = problem_row(options.label, linted)
            rows[row["name"]] = row
            print(f"{row['name']:60} {'fit' if row['value'] else row['findings']}", flush=True)
            ordered = in_order(rows.values())
            write_result(
                options.json, device_name(info), info.versions, [*total_rows(ordered), *ordered]
            )
    for row in total_rows(in_order(rows.values())):
        print(f"{row['name']:60} {row['value']} of {row['n']}")
    print(f"{len(missing(problems, options.label, rows))} of {len(problems)} left")


if __name__ == "__main__":
    main()
