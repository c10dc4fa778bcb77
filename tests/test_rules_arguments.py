"""Of a call's arguments each comes to its own parameter where that is known, and to all where it is not."""

import textwrap

import pytest
from rules_arguments import GIVEN, MIXED
from rules_corpus import HEAD

from kevin_env.rules import check_rules

MODEL = """
import collections, itertools
def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
class ModelNew(nn.Module):
    def go(self, a, b=2, c=3, *more, **kw):
        ext.f(a, 3)
        {does}
        return a
    def forward(self, x):
{lines}
"""


def submission(lines: str, does: str) -> str:
    code = HEAD + MODEL.format(lines=textwrap.indent(lines, " " * 8), does=does)
    compile(code, "submission.py", "exec")
    return code


@pytest.mark.parametrize("name", GIVEN)
def test_numbers_that_come_beside_tensors_are_numbers(name: str) -> None:
    assert check_rules(submission(*GIVEN[name])) is None


@pytest.mark.parametrize("name", MIXED)
def test_a_tensor_in_a_numbers_place_is_found(name: str) -> None:
    found = check_rules(submission(*MIXED[name]))
    assert found is not None and found.kind == "torch_compute"
    assert check_rules(submission(*MIXED[name]), "open") is None
