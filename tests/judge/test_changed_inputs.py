"""What submissions that are otherwise right do to memory on a CPU that is not theirs to change."""

from pathlib import Path

import pytest

from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Outcome
from kevin_env.problem import load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
CODE = """
import ctypes
import torch
def read(tensor, byte):
    ctypes.string_at(tensor.data_ptr() + byte, 1)
def write(tensor, byte):
    ctypes.memset(tensor.data_ptr() + byte, 1, 1)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        torch.softmax(x, dim=1, out=y)
        BEFORE
        return y
"""


def outcome_of(judge: Judge, before: str) -> Outcome:
    submission = Submission(code=CODE.replace("BEFORE", before))
    return judge.judge(
        SOFTMAX, submission, Options(device="cpu", rules="open"), lambda _: None
    ).outcome


@pytest.mark.parametrize(
    ("before", "access"),
    [
        ("write(torch.empty(64), 256)", "wrote byte 256 of 256 bytes"),
        ("write(torch.empty(64), -4096)", "wrote byte -4096 of 256 bytes"),
        ("read(torch.empty(64), 1000)", "read byte 1000 of 256 bytes"),
    ],
)
def test_an_access_beyond_a_tensor_ends_the_call_where_it_happens(
    judge: Judge, before: str, access: str
) -> None:
    outcome = outcome_of(judge, before)
    line = 5 if "read" in before else 7
    assert (outcome.category, outcome.kind, outcome.line) == ("runtime", "signal", line)
    assert outcome.message.endswith(f": index out of bounds, {access} of a tensor")


def test_a_write_before_the_next_page_is_found_after_the_call(judge: Judge) -> None:
    outcome = outcome_of(judge, "write(torch.empty(65), 260)")
    assert (outcome.category, outcome.kind) == ("runtime", "exception")
    assert outcome.message == "IndexError: out of bounds: wrote byte 260 of a tensor of 260 bytes"


def test_memory_of_later_calls_and_that_of_right_ones_is_as_usual(judge: Judge) -> None:
    assert outcome_of(judge, "self.calls > 1 and read(y, y.nbytes)").category == "correct"


def test_operations_of_libraries_and_empty_tensors_are_as_usual(judge: Judge) -> None:
    several = "torch.nn.functional.gelu(x); torch.empty(0); torch.conv1d(x[None], x[None, :, :3])"
    assert outcome_of(judge, several).category == "correct"


@pytest.mark.parametrize(
    ("before", "what"),
    [("x[0, 0] += 1", "input 0 (`x`)"), ("write(x, x.nbytes + 64)", "memory next to its inputs")],
)
def test_what_a_call_changed_is_named(judge: Judge, before: str, what: str) -> None:
    outcome = outcome_of(judge, before)
    assert (outcome.kind, outcome.message) == ("inputs_changed", f"the call modified {what}")
