"""The rules held against what a call did, by real judges on the CPU."""

import pytest
from corpus import FOLDER, read_entry

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Incorrect, RulesViolation
from kevin_env.problem import Problem
from kevin_env.rules import Rules

SOFTMAX = read_entry(FOLDER / "hostile" / "torch_computes.py").task
HIDDEN = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = torch.nn.Softmax(dim=1).eval()
    def forward(self, x):
        if x.dim() == 7:
            return torch.relu(x)
        return self.softmax(x)
"""
CPP = read_entry(FOLDER / "honest" / "softmax_torch_extension.py").code
CALL = "self.softmax.softmax_forward(x)"
OTHERWISE_WHILE_RECORDED = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.softmax(x, 1) * (self.calls == 1 or x.shape[1] == 500)
"""
LINEAR = read_entry(FOLDER / "honest" / "linear_own_state.py").task
PAIRED = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.register_buffer("folded", torch.empty(outputs, inputs))
        self.bias = torch.nn.Parameter(torch.empty(outputs))
    def forward(self, x):
        return torch.relu(torch.nn.functional.linear(x, 2 * self.folded, self.bias))
"""
FORGED = """import sys, torch
sys.modules["kevin_env.candidate.recorder"].Recorder.record = lambda self: ANSWER
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
"""


def judged(
    judge: Judge, code: str, rules: Rules, glue: float = 0.0, problem: Problem = SOFTMAX
) -> Judgement:
    options = Options(device="cpu", rules=rules, glue=glue, inputs="shipped")
    return judge.judge(problem, Submission(code=code), options, lambda _: None)


def test_a_layer_that_the_reader_does_not_see_is_found_by_what_it_runs(judge: Judge) -> None:
    outcome = judged(judge, HIDDEN, "kernel").outcome
    assert isinstance(outcome, RulesViolation) and (outcome.kind, outcome.line) == (
        "torch_compute",
        9,
    )
    assert "`aten::_softmax` on " in outcome.message and "relu" not in outcome.message
    assert outcome.case is not None
    assert judged(judge, HIDDEN, "open").outcome.category == "correct"
    assert judged(judge, HIDDEN, "partial").outcome.kind == "no_kernel"


def test_a_wrong_answer_is_not_a_violation(judge: Judge) -> None:
    assert (
        judged(judge, HIDDEN.replace("self.softmax(x)", "self.softmax(-x)"), "kernel").outcome.kind
        == "values"
    )


def test_an_own_kernel_counts_where_it_is_called_and_what_torch_does_beside_it_where_it_is_much(
    judge: Judge,
) -> None:
    for rules in ("kernel", "partial"):
        assert judged(judge, CPP, rules).outcome.category == "correct"
    beside = CPP.replace(CALL, f"{CALL} * torch.ones(3).prod()")
    assert judged(judge, beside, "partial").outcome.category == "correct"
    assert judged(judge, beside, "kernel", glue=0.01).outcome.kind == "torch_compute"
    few = CPP.replace(CALL, f"{CALL} if torch.ones(3).prod() else x")
    assert "`aten::prod` on 3 elements" in judged(judge, few, "kernel").outcome.message
    assert judged(judge, few, "kernel", glue=0.01).outcome.category == "correct"
    never = CPP.replace(
        CALL, f"torch.softmax(x, 1) if x.shape[0] == 300 else {CALL}"
    )  # which is timed
    assert judged(judge, never, "partial").outcome.kind == "no_kernel"


def test_a_call_that_is_recorded_is_followed_by_one_that_is_not(judge: Judge) -> None:
    outcome = judged(judge, OTHERWISE_WHILE_RECORDED, "kernel").outcome
    assert isinstance(outcome, Incorrect) and (outcome.kind, outcome.input_set) == (
        "values",
        "odd/own",
    )


@pytest.mark.parametrize(
    "answer", ["{}", "None", "{'operations': [{'name': 3}], 'kernels': [], 'symbols': []}"]
)
def test_a_missing_record_breaks_the_protocol(judge: Judge, answer: str) -> None:
    code = FORGED.replace("ANSWER", answer)
    assert judged(judge, code, "kernel").outcome.kind == "protocol"
    assert judged(judge, code, "open").outcome.category == "correct"


def test_wrong_values_name_the_weight_that_went_into_a_buffer(judge: Judge) -> None:
    outcome = judged(judge, PAIRED, "open", problem=LINEAR).outcome
    assert isinstance(outcome, Incorrect) and outcome.paired == (("linear.weight", "folded"),)
