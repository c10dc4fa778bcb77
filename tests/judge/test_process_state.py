"""What a problem's code changes in its process is refused, with its line, and taken back."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kevin_env.judge.inputs.reference import Case
from kevin_env.problem import Problem, ProblemError

SOURCE = """
import os, random, sys
import numpy as np
import torch
from torch import nn
AT_MODULE
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        AT_MODEL
    def forward(self, x):
        y = x + 1
        AT_FORWARD
        return y
def get_inputs():
    AT_INPUTS
    return [torch.rand(4)]
def get_init_inputs():
    AT_INIT
    return []
"""
LINES = {"MODULE": 6, "MODEL": 10, "FORWARD": 13, "INPUTS": 16, "INIT": 19}
SETTINGS: dict[str, tuple[str, Callable[[], Any]]] = {
    "default dtype": ("torch.set_default_dtype(torch.float64)", torch.get_default_dtype),
    "default device": ("torch.set_default_device('meta')", torch.get_default_device),
    "deterministic mode": (
        "torch.use_deterministic_algorithms(True)",
        torch.are_deterministic_algorithms_enabled,
    ),
    "number of threads": ("torch.set_num_threads(3)", torch.get_num_threads),
    "gradient mode": ("torch.set_grad_enabled(not torch.is_grad_enabled())", torch.is_grad_enabled),
    "autocast": (
        "torch.set_autocast_enabled('cpu', True)",
        lambda: torch.is_autocast_enabled("cpu"),
    ),
    "mkldnn.enabled": (
        "torch.backends.mkldnn.enabled = False",
        lambda: torch.backends.mkldnn.enabled,
    ),
    "fp32_precision": (
        "torch.backends.fp32_precision = 'tf32'",
        lambda: torch.backends.fp32_precision,  # type: ignore[attr-defined]
    ),
    "matmul.fp32_precision": (
        "torch.set_float32_matmul_precision('medium')",
        lambda: torch.backends.mkldnn.matmul.fp32_precision,  # type: ignore[attr-defined]
    ),
    "os.environ": ("os.environ['KEVIN_TEST'] = '1'", lambda: os.environ.get("KEVIN_TEST")),
    "sys.path": ("sys.path.insert(0, '/nowhere')", lambda: list(sys.path)),
    "working folder": ("os.chdir('/')", Path.cwd),
    "recursion limit": ("sys.setrecursionlimit(5000)", sys.getrecursionlimit),
}


def run(place: str, code: str) -> None:
    """Opens a problem with this code in one place, and calls its reference."""
    text = SOURCE
    for each in LINES:
        text = text.replace(f"AT_{each}", code if each == place else "pass")
    case = Case(Problem(id="p", source=text, name="p"), "main", torch.device("cpu"))
    case.draw_weights(1)
    case.answer(*case.draw_inputs("own", 1), 1)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_a_problem_changes_is_refused_and_set_back(name: str) -> None:
    code, read = SETTINGS[name]
    run("MODULE", "pass")
    before = read()
    for _ in range(2):
        with pytest.raises(ProblemError, match=rf"^p: line 6 changes .*{name}; a problem may only"):
            run("MODULE", code)
        assert read() == before


@pytest.mark.parametrize("place", LINES)
def test_the_line_is_named_wherever_it_is(place: str) -> None:
    with pytest.raises(ProblemError, match=f"line {LINES[place]} changes torch's default dtype"):
        run(place, "torch.set_default_dtype(torch.float64)")
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        run(place, "torch.set_default_dtype(torch.float64); 1 / 0")
    assert torch.get_default_dtype() == torch.float32


def test_code_that_cannot_run_twice_has_no_line() -> None:
    once = "assert not hasattr(os, 'ran'); os.ran = 1; torch.set_num_threads(3)"
    try:
        with pytest.raises(ProblemError, match="p: its code changes torch's number of threads"):
            run("MODULE", once)
    finally:
        del os.ran  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", LINES)
def test_a_problem_may_set_seeds(place: str) -> None:
    run(place, "torch.manual_seed(0); random.seed(0); np.random.seed(0)")


def test_a_folder_that_is_gone_is_no_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    run("MODULE", "pass")
