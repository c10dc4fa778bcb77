"""Facts of a problem are found once, whichever process needs them, and never in the way."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from kevin_env.judge.api import DeviceInfo, Options
from kevin_env.judge.compare.tolerance import Tolerance
from kevin_env.judge.inputs import facts
from kevin_env.judge.inputs.facts import FactStore, ProblemFacts
from kevin_env.problem import Problem

CPU = torch.device("cpu")
INFO = DeviceInfo(device="cpu", name="some CPU", processors=1, versions={"torch": "2"})
SOURCE = """
import torch
n = 4
CASES = {"cpu": {"n": 3}, "odd": {"n": 5}}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
    def forward(self, x, mask):
        return self.linear(x), mask
def get_inputs():
    return [torch.rand(2, n), torch.rand(n) < 0.5]
def get_init_inputs():
    return []
"""
PROBLEM = Problem(id="p", name="p", source=SOURCE, cases=("main", "cpu", "odd"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kevin-env"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """The problems that facts were found of."""
    problems, find = list[Problem](), facts.find_facts

    def counted(problem: Problem, device: torch.device) -> ProblemFacts:
        problems.append(problem)
        return find(problem, device)

    monkeypatch.setattr(facts, "find_facts", counted)
    return problems


def test_what_one_judge_finds_the_next_one_knows(found: list[Problem]) -> None:
    first, second = FactStore(CPU, INFO), FactStore(CPU, INFO)
    known = first.of(PROBLEM)
    assert first.of(PROBLEM) is known and second.of(PROBLEM) == known and found == [PROBLEM]
    assert [each.told.name for each in known.cases] == ["odd", "cpu"]
    told = known.told(INFO, Options(device="cpu"))
    assert [each.name for each in told.cases] == ["cpu", "odd"]
    assert told.cases[0].outputs == ("float32[2, 3]", "bool[3]")
    assert told.weights == ("linear.weight: float32[3, 3]", "linear.bias: float32[3]")
    assert len(told.distributions) == 4
    assert len(known.told(INFO, Options(device="cpu", inputs="shipped")).distributions) == 1


@pytest.mark.parametrize(
    "other",
    [
        PROBLEM.model_copy(update={"source": SOURCE + "#"}),
        PROBLEM.model_copy(update={"cases": ("main",)}),
        INFO.model_copy(update={"name": "another CPU"}),
        INFO.model_copy(update={"versions": {"torch": "3"}}),
    ],
)
def test_another_problem_device_or_version_has_facts_of_its_own(
    found: list[Problem], other: Any
) -> None:
    FactStore(CPU, INFO).of(PROBLEM)
    if isinstance(other, Problem):
        FactStore(CPU, INFO).of(other)
    else:
        FactStore(CPU, other).of(PROBLEM)
    assert len(found) == 2


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-9], lambda text: "[]", lambda text: text.replace("p", "q")]
)
def test_a_damaged_file_is_ignored_and_written_anew(
    found: list[Problem], folder: Path, damage: Any
) -> None:
    FactStore(CPU, INFO).of(PROBLEM)
    (file,) = folder.iterdir()
    file.write_text(damage(file.read_text()))
    FactStore(CPU, INFO).of(PROBLEM)
    FactStore(CPU, INFO).of(PROBLEM)
    assert len(found) == 2 and list(folder.iterdir()) == [file]
    assert json.loads(file.read_text())["key"]["name"] == "some CPU"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file away")
def test_a_file_of_another_user_is_ignored(found: list[Problem], folder: Path) -> None:
    FactStore(CPU, INFO).of(PROBLEM)
    (file,) = folder.iterdir()
    os.chown(file, 12345, -1)
    FactStore(CPU, INFO).of(PROBLEM)
    assert len(found) == 2


@pytest.mark.parametrize("where", ["file", "folder", "nowhere"])
def test_where_nothing_can_be_written_facts_are_found_by_each_judge(
    found: list[Problem], folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "file":
        folder.write_text("in the way")
    elif where == "folder":
        FactStore(CPU, INFO).of(PROBLEM)
        (file,) = folder.iterdir()
        file.unlink()
        file.mkdir()
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    found.clear()
    for _ in range(2):
        store = FactStore(CPU, INFO)
        assert store.of(PROBLEM) == store.of(PROBLEM)
    assert len(found) == 2 and not list(folder.glob("*.json?*"))


@pytest.mark.parametrize(
    ("inputs", "signed", "scale"),
    [
        ("torch.rand(2, n)", "mostly zero, else around the middle of the range", "std(output)"),
        ("torch.rand(1, n)", "mostly zero, else around the middle of the range", "max(abs(output))"),
        ("torch.randn(2, n)", "standard normal", "std(output)"),
        ("torch.randn(2, n).exp()", "mostly zero, else standard normal, as absolute values", "std(output)"),
    ],
)  # fmt: skip
def test_facts_are_those_of_the_inputs_and_outputs_at_hand(
    inputs: str, signed: str, scale: str
) -> None:
    source = SOURCE.replace("torch.rand(2, n)", inputs).replace('"n": 3', '"n": 15')
    alone = source.replace(", mask", "").replace(", torch.rand(n) < 0.5", "")
    told = facts.find_facts(PROBLEM.model_copy(update={"source": alone}), CPU)
    told = told.told(INFO, Options())
    assert f"signed: {signed}" in told.distributions
    ranged = "mapped into the input's range" in told.distributions[0]
    assert ranged is (inputs != "torch.randn(2, n)")  # entries of another size stay in it
    assert scale in told.tolerance
    assert ("small elements" in told.tolerance) is (scale == "std(output)")


def test_tolerances_are_kept_for_the_next_judge() -> None:
    store, tolerance = FactStore(CPU, INFO), Tolerance(0.1, math.inf, True)
    store.tolerances(PROBLEM, "varied")["cpu/own", 0] = tolerance
    assert FactStore(CPU, INFO).tolerances(PROBLEM, "varied") == {}
    store.keep_tolerances(PROBLEM, "varied")
    assert FactStore(CPU, INFO).tolerances(PROBLEM, "varied") == {("cpu/own", 0): tolerance}
    assert FactStore(CPU, INFO).tolerances(PROBLEM, "shipped") == {}
