"""The form of all files in `results`: where and when it was measured, and a row for each figure."""

import json
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kevin_env.judge.api import DeviceInfo

Row = dict[str, Any]
"""`name`, `value`, `unit`, `n`, `spread` and whatever else a script has to say."""


def median_row(name: str, values: list[float], unit: str = "s") -> Row:
    """The median of some measurements, with their coefficient of variation."""
    spread = statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else None
    return {"name": name, "value": statistics.median(values), "unit": unit, "n": len(values), "spread": spread}


def plain_row(name: str, value: float | None, unit: str = "count", n: int = 1) -> Row:
    """A figure that does not vary."""
    return {"name": name, "value": value, "unit": unit, "n": n, "spread": None}


def device_name(info: DeviceInfo) -> str:
    """`cpu`, or the last word of a GPU's name, such as `h200`."""
    return "cpu" if info.device == "cpu" else info.name.split()[-1].lower()


def write_result(file: Path | None, device: str, versions: dict[str, str], rows: Iterable[Row]) -> None:
    """Writes the file, where there is to be one. Never NaN or Infinity."""
    if file is not None:
        date = datetime.now(UTC).date().isoformat()
        result = {"device": device, "date": date, "versions": versions, "rows": list(rows)}
        file.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")


def known_rows(file: Path | None) -> dict[str, Row]:
    """The rows that a file has already, by name."""
    if file is None or not file.exists():
        return {}
    return {row["name"]: row for row in json.loads(file.read_text())["rows"]}
