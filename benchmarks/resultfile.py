"""The format of the files in `results`: device, date and versions, and a row per figure."""

import json
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kevin_env.judge.api import DeviceInfo
from kevin_env.languages import LANGUAGES

Row = dict[str, Any]
"""`name`, `value`, `unit`, `n`, `spread` and further fields."""
OPTIONAL = {each.package for each in LANGUAGES.values() if each.extra}
"""Packages whose versions say nothing of a result as a whole; rows of `languages.py` have them."""


def median_row(name: str, values: list[float], unit: str = "s") -> Row:
    """The median of some measurements, with their coefficient of variation."""
    mean = statistics.mean(values)
    spread = statistics.stdev(values) / mean if len(values) > 1 and mean else None
    return {
        "name": name,
        "value": statistics.median(values),
        "unit": unit,
        "n": len(values),
        "spread": spread,
    }


def plain_row(name: str, value: float | None, unit: str = "count", n: int = 1) -> Row:
    """A figure without a spread."""
    return {"name": name, "value": value, "unit": unit, "n": n, "spread": None}


def device_name(info: DeviceInfo, count: int = 1) -> str:
    """`cpu`, or the model and number of GPUs, such as `h200` or `h200x4`."""
    models = re.findall(r"\b[A-Z]{1,2}\d{2,4}\b", info.name)
    name = (
        "cpu"
        if info.device == "cpu"
        else (models or info.name.split())[0 if models else -1].lower()
    )
    return name if count == 1 else f"{name}x{count}"


def common_device(infos: Sequence[DeviceInfo]) -> DeviceInfo:
    """The first of some devices, which must be of one kind, as a file is.

    Raises:
        SystemExit: if they are not.
    """
    if len(kinds := {each.name for each in infos}) > 1:
        raise SystemExit(f"choose devices of one kind, not {', '.join(sorted(kinds))}")
    return infos[0]


def write_result(
    file: Path | None, device: str, versions: dict[str, str], rows: Iterable[Row]
) -> None:
    """Writes the file, if any, atomically. Never NaN or Infinity."""
    if file is not None:
        date = datetime.now(UTC).date().isoformat()
        required = _required(versions)
        result = {"device": device, "date": date, "versions": required, "rows": list(rows)}
        new = file.with_name(f".{file.name}.new")
        new.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        new.replace(file)


class Results:
    """The rows of a run, written after every change, so that little is lost if it is killed.

    Other rows of the file are kept if they are of the same versions, so that a run can be done in
    parts.
    """

    def __init__(self, file: Path | None, device: str, versions: dict[str, str]) -> None:
        self._file, self.device, self._versions = file, device, versions
        self._rows = known_rows(file, versions)

    def put(self, *rows: Row) -> None:
        """Adds rows, or replaces those with their names."""
        self._rows |= {row["name"]: row for row in rows}
        write_result(self._file, self.device, self._versions, self._rows.values())

    def report(self, *rows: Row) -> None:
        """Puts and prints rows."""
        self.put(*rows)
        self._print(rows)

    def put_largest(self, name: str, beginning: str) -> None:
        """Adds a row with the largest value of those whose names begin so, if any; `of` names its
        row.
        """
        rows = [row for each, row in self._rows.items() if each.startswith(beginning)]
        if rows:
            largest = max(rows, key=lambda row: row["value"])
            self.put({**largest, "name": name, "of": largest["name"].removeprefix(beginning)})

    def value(self, name: str) -> float:
        """The value of a row."""
        return self._rows[name]["value"]

    def print_all(self) -> None:
        """Prints all rows."""
        self._print(self._rows.values())

    def _print(self, rows: Iterable[Row]) -> None:
        for row in rows:
            spread = "" if row["spread"] is None else f"  (varies by {row['spread']:.1%})"
            value = "-" if row["value"] is None else f"{row['value']:.4g}"
            print(f"{row['name']:55} {value:>10} {row['unit']}  n = {row['n']}{spread}", flush=True)


def known_rows(file: Path | None, versions: dict[str, str] | None = None) -> dict[str, Row]:
    """The rows of a file by name; none if they are of other versions than `versions`."""
    if file is None or not file.exists():
        return {}
    result = json.loads(file.read_text())
    if versions is not None and _required(result["versions"]) != _required(versions):
        print(f"{file} is of other versions, so its rows are dropped", file=sys.stderr)
        return {}
    return {row["name"]: row for row in result["rows"]}


def _required(versions: dict[str, str]) -> dict[str, str]:
    return {name: each for name, each in versions.items() if name not in OPTIONAL}
