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


def test_scripts_of_peers_parse(script: Script) -> None:
    evaluators = script("evaluators")
    own = [evaluators.OWN_PROCESSES + shim for *_, shim in evaluators.OWN.values()]
    for shim in (evaluators.KERNRL, evaluators.KERNELBENCH, *own):
        peer = evaluators.Peer({"a/b.py": "c"}, shim, None)
        ast.parse(evaluators.script_of(peer, [("reference", "submission")], "cuda:0"))


ANSWERS_TWO_AND_HANGS = """
import time
time.sleep(0.5)
print("READY", flush=True)
for reference, submission in JOBS[:2]:
    say(reference == submission, 1)
time.sleep(100)
"""


def test_a_rate_is_of_what_a_peer_answers_in_time(script: Script) -> None:
    peer = script("evaluators").Peer({}, ANSWERS_TWO_AND_HANGS, "0abc", serves=True)
    row = script("peer_rates").peer_row("peer", peer, [("a", "a"), ("a", "b"), ("a", "c")], 2.0)
    assert (row["n"], row["accepted"], row["asked"], row["commit"]) == (2, 1, 3, "0abc")
    assert row["seconds"] < 0.5


def test_a_peer_without_a_service_has_a_new_process_for_each(script: Script) -> None:
    shim = "say(SUBMISSION == 'b', 1) if SUBMISSION != 'c' else sys.exit(1)"
    peer = script("evaluators").Peer({}, shim, None)
    row = script("peer_rates").peer_row("peer", peer, [("a", "b"), ("a", "c")], 60.0)
    assert (row["n"], row["accepted"], "commit" in row) == (2, 1, False)
