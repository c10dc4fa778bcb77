"""The lint over a set of problems: ours, KernelBench's, or a folder of files in its form, by the same measure.

For each problem: whether the judge accepts its own reference, and which trivial answers it accepts, on the problem's
own inputs alone and with the further distributions. Rows of problems that the file holds already and that are not
looked at now are kept, so that sets can be added one after the other.

    python benchmarks/lint.py --json benchmarks/results/lint.cpu.json
    python benchmarks/lint.py --label kernelbench --device cuda --json benchmarks/results/lint.h200.json kernelbench:
    python benchmarks/lint.py --label kernrl --device cuda --json benchmarks/results/lint.h200.json FOLDER
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resultfile import Row, device_name, known_rows, plain_row, write_result

from kevin_env.app.catalogue import named_problems
from kevin_env.app.linting import Linted, lint
from kevin_env.app.screen import make_console
from kevin_env.judge.api import DeviceInfo, Options
from kevin_env.judge.pool import LocalPool

TOTALS = {
    "fit": lambda row: row["value"] == 1,
    "own reference accepted": lambda row: row["reference"] == "accepted",
    "a trivial answer accepted": lambda row: bool(row["accepted"]),
    "a trivial answer accepted as shipped": lambda row: bool(row["accepted_as_shipped"]),
}
"""What is counted over the problems of each set."""


def problem_row(label: str, linted: Linted) -> dict[str, Any]:
    """A problem as a row: its value is 1 when it is fit."""
    row = linted.row()
    cost = row.get("cost") or {}
    return {
        "name": f"{label}/{row['id']}",
        "value": int(row.get("ok", False)),
        "unit": "fit",
        "n": 1,
        "spread": None,
        "reference": row.get("reference", "judge failed"),
        "accepted": row.get("accepted", []),
        "accepted_as_shipped": row.get("accepted_as_shipped", []),
        "findings": [f"{each['check']}: {each['message']}" for each in row.get("findings", [])] or row.get("error"),
        "took": row.get("took"),
        **cost,
    }


def total_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each set of problems, how many of them each of `TOTALS` is true of; `n` is how many there are."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sets.setdefault(row["name"].split("/")[0], []).append(row)
    return [
        plain_row(f"{label}: {what}", sum(map(holds, of)), "problems", len(of))
        for label, of in sets.items()
        for what, holds in TOTALS.items()
    ]


def write(file: Path, info: DeviceInfo, rows: dict[str, Row]) -> None:
    write_result(file, device_name(info), info.versions, [*total_rows(rows.values()), *rows.values()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="as for `kevin-env problems lint`; ours when left out")
    parser.add_argument("--label", default="ours", help="what the set is called in the result")
    parser.add_argument("--level", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with LocalPool() as pool:
        info = pool.device(options.device)
        rows = {name: row for name, row in known_rows(options.json, info.versions).items() if row["unit"] == "fit"}
        problems = named_problems(options.names, options.level)
        for linted in lint(problems, pool, Options(device=options.device), make_console(stream="stderr")):
            row = problem_row(options.label, linted)
            rows[row["name"]] = row
            print(f"{row['name']:60} {'fit' if row['value'] else row['findings']}", flush=True)
            if options.json:
                write(options.json, info, rows)
    for row in total_rows(rows.values()):
        print(f"{row['name']:60} {row['value']} of {row['n']}")


if __name__ == "__main__":
    main()
