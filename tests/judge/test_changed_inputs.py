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
def write(tensor, byte):
    ctypes.memset(tensor.data_ptr() + byte, 1, 1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
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
    ("before", "what"),
    [("x[0, 0] += 1", "input 0 (`x`)"), ("write(x, x.nbytes + 64)", "memory next to its inputs")],
)
def test_what_a_call_changed_is_named(judge: Judge, before: str, what: str) -> None:
    outcome = outcome_of(judge, before)
    assert (outcome.kind, outcome.message) == ("inputs_changed", f"the call modified {what}")
