"""What published figures rely on: well-formed results, and kernels that no cache has seen."""

import ast
import importlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
Script = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    """Imports a script by its name; they import each other from their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module


TWICE = {"kernelbench_agreement.h200.json"}
"""Has names twice, as two folders of one run have one name. Figures only use its totals."""


def faults(file: Path) -> Iterator[str]:
    result = json.loads(file.read_text())
    if set(result) != {"device", "date", "versions", "rows"} or not result["rows"]:
        yield f"has {sorted(result)}"
    names = Counter(row.get("name") for row in result["rows"])
    if file.name not in TWICE:
        yield from (f"has {name} {many} times" for name, many in names.items() if many > 1)
    for row in result["rows"]:
        if not {"name", "value", "unit", "n", "spread"} <= set(row):
            yield f"{row.get('name')} lacks a field"
        elif not (row["value"] is None or math.isfinite(row["value"])):
            yield f"{row['name']} is {row['value']}"


def test_results_are_well_formed() -> None:
    files = sorted((BENCHMARKS / "results").glob("*.json"))
    assert len(files) > 20
    assert [(file.name, fault) for file in files for fault in faults(file)] == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_same_kernels_come_in_other_words_each_time(device: str, script: Script) -> None:
    honest = script("honest")
    for entry in (
        *honest.honest_entries(device),
        *honest.solution_entries(device),
        *honest.extension_entries(device),
    ):
        one, two = honest.fresh(entry.code, 101), honest.fresh(entry.code, 202)
        ast.parse(one)
        assert one != two
        if honest.kind_of(entry.code) in ("cuda", "triton"):
            assert "fresh_101" in one, entry.name  # inside what is compiled, not beside it


def test_rows_of_an_earlier_run_are_kept_if_they_are_of_the_same_versions(
    tmp_path: Path, script: Script
) -> None:
    resultfile = script("resultfile")
    file = tmp_path / "x.cpu.json"
    resultfile.Results(file, "cpu", {"torch": "1"}).put(resultfile.plain_row("old", 1.0))
    resultfile.Results(file, "cpu", {"torch": "1"}).put(resultfile.plain_row("beside it", 1.0))
    assert set(resultfile.known_rows(file)) == {"old", "beside it"}
    resultfile.Results(file, "cpu", {"torch": "2"}).put(resultfile.plain_row("new", 2.0))
    assert set(resultfile.known_rows(file)) == {"new"}
