"""Judging for ten minutes while its processes are killed, and what the soak test makes of it."""

import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "soak.py"


@pytest.mark.full
@pytest.mark.xdist_group("soak")
@pytest.mark.timeout(1300)  # also the time to start, and to answer what is open at the end
def test_nothing_is_lost_wrong_or_left_while_processes_are_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        command = [sys.executable, SCRIPT, "--minutes", "10"]
        code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
    said = log.read_text()
    print(said)
    failures = [line for line in said.splitlines() if line.startswith("FAILED")]
    assert (code, failures) == (0, [])


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("soak")


def test_every_broken_expectation_is_named(soak: ModuleType) -> None:
    answers = {
        "right": ["correct/too_noisy: fine"],
        "wrong": ["correct/timed: fine"],
        "raises": ["runtime/killed: by the kernel"],
        "hangs": [],
        "forks": ["correct/timed: fine"] * 2,
        "broken": [f"{soak.ERROR}: the judge process is gone"],
    }
    asked = {at: soak.Asked(case, 0.0, said) for at, (case, said) in enumerate(answers.items())}
    flat = dict.fromkeys(soak.GROWTH, 10)
    run = SimpleNamespace(
        clients=[SimpleNamespace(asked=asked)], kills=Counter(), failures=[],
        samples=[flat, flat, flat | {"folders": 22}],
    )  # fmt: skip
    rows = soak.rows_of(run, {"folders": 0, "processes": 1})
    assert run.failures == [
        "wrong: wrong: correct/timed: fine",
        "wrong: raises: runtime/killed: by the kernel",
        "errors: error of the judge: the judge process is gone",
        "lost: hangs",
        "doubled: ['correct/timed: fine', 'correct/timed: fine']",
        "left: processes: at the end",
        "folders grew from 10 to 22, over 21",
    ]
    assert {row["name"]: row["value"] for row in rows}["judgements"] == 4
