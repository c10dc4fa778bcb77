"""What a problem's code sets for its process holds for that problem, wherever it was set, and for
no other.
"""

import functools
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch

from kevin_env.judge.inputs.reference import Case
from kevin_env.parsing import parse
from kevin_env.problem import Problem, ProblemError

CPU = torch.device("cpu")
SOURCE = """
import os, random, sys, warnings
import numpy as np
import torch
from torch import nn
AT_MODULE
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        AT_MODEL
    def forward(self, x):
        AT_FORWARD
        return SEEN
def get_inputs():
    AT_INPUTS
    return [torch.rand(4)]
def get_init_inputs():
    AT_INIT
    return []
"""
PLACES = ("MODULE", "INIT", "MODEL", "INPUTS", "FORWARD")
every_place = pytest.mark.parametrize("place", PLACES)


def find(path: str) -> object:
    """What stands under a path in torch that type checkers do not know."""
    return functools.reduce(getattr, path.split("."), cast("object", torch))


SETTINGS: dict[str, tuple[str, Callable[[], Any]]] = {
    "dtype": ("torch.set_default_dtype(torch.float64)", torch.get_default_dtype),
    "deterministic": (
        "torch.use_deterministic_algorithms(True)",
        torch.are_deterministic_algorithms_enabled,
    ),
    "threads": ("torch.set_num_threads(1)", torch.get_num_threads),
    "autocast": (
        "torch.set_autocast_enabled('cpu', True)",
        lambda: torch.is_autocast_enabled("cpu"),
    ),
    "mkldnn": ("torch.backends.mkldnn.enabled = False", lambda: torch.backends.mkldnn.enabled),
    "environment": ("os.environ['KEVIN_TEST'] = '1'", lambda: os.environ.get("KEVIN_TEST")),
    "path": ("sys.path.insert(0, '/nowhere')", lambda: list(sys.path)),
    "warnings": ("warnings.filterwarnings('ignore', 'a test')", lambda: list(warnings.filters)),
    "folder": ("os.chdir('/')", os.getcwd),
    "precision": (
        "torch.set_float32_matmul_precision('medium')",
        lambda: find("backends.mkldnn.matmul.fp32_precision"),
    ),
    "all precision": (
        "torch.backends.fp32_precision = 'tf32'",
        lambda: find("backends.fp32_precision"),
    ),
    "device": ("torch.set_default_device('meta')", torch.get_default_device),
}


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def source(place: str, code: str, seen: str = "x") -> Problem:
    text = SOURCE.replace("SEEN", seen)
    for each in PLACES:
        text = text.replace(f"AT_{each}", code if each == place else "pass")
    return Problem(id="p", source=text, name="p")


def run(place: str, code: str, seen: str = "x") -> torch.Tensor:
    """What the reference gives of its second input set."""
    case = Case(source(place, code, seen), "main", CPU)
    case.draw_weights(1)
    case.answer(*case.draw_inputs("own", 1), 1)
    return case.answer(*case.draw_inputs("own", 2), 1)


@every_place
@pytest.mark.parametrize("name", SETTINGS)
def test_what_one_problem_sets_no_other_finds(name: str, place: str) -> None:
    if (name, place) == ("device", "INPUTS"):
        pytest.skip("inputs without data are none")
    code, read = SETTINGS[name]
    run("MODULE", "pass")  # `precision` sets what it does
    parse("")  # and this a filter of warnings
    before = read()
    run(place, code)
    assert read() == before
    run("MODULE", "pass")
    assert read() == before


@pytest.mark.parametrize("code", ["torch.manual_seed(0)", "random.seed(0)", "np.random.seed(0)"])
@pytest.mark.parametrize("place", ["MODULE", "INIT"])
def test_seeds_that_a_problem_sets_where_nothing_is_drawn_for_it_are_its_own(
    code: str, place: str
) -> None:
    drawn: list[tuple[float, float, float]] = []
    for other in ("pass", code):
        torch.manual_seed(7)
        random.seed(7)
        np.random.seed(7)
        Case(source(place, other), "main", CPU)
        drawn.append((torch.rand(1).item(), random.random(), float(np.random.rand())))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("dtype", "torch.full((), float(torch.rand(1).dtype == x.dtype == torch.float64))"),
        ("deterministic", "torch.full((), float(torch.are_deterministic_algorithms_enabled()))"),
        ("threads", "torch.full((), float(torch.get_num_threads() == 1))"),
        ("environment", "torch.full((), float(os.environ['KEVIN_TEST']))"),
        ("path", "torch.full((), float(sys.path[0] == '/nowhere'))"),
    ],
)
def test_what_a_module_sets_holds_in_its_functions_and_its_model(name: str, seen: str) -> None:
    assert run("MODULE", SETTINGS[name][0], seen) == 1
    assert run("INPUTS", SETTINGS[name][0], seen) == 1  # as in a process of its own


def test_the_precision_of_float32_is_the_judges_to_choose() -> None:
    seen = "torch.full((), float(torch.backends.fp32_precision == 'none'))"
    assert run("MODULE", SETTINGS["all precision"][0], seen) == 1


@every_place
def test_a_problem_that_fails_leaves_nothing_either(place: str) -> None:
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        run(place, "torch.set_default_dtype(torch.float64); 1 / 0")
    assert torch.get_default_dtype() == torch.float32


def test_a_folder_that_is_gone_is_no_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run("MODULE", "pass").shape == (4,)
