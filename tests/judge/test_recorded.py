"""The rules held against what a call did, by real judges on the CPU."""

import base64
import subprocess
import sysconfig
from pathlib import Path

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
EXTENSION = r"""
#include <Python.h>
#include <math.h>
static PyObject* softmax(PyObject* self, PyObject* given) {
    unsigned long long from, to, rows, columns;
    if (!PyArg_ParseTuple(given, "KKKK", &from, &to, &rows, &columns)) return NULL;
    const float* in = (const float*)from;
    float* out = (float*)to;
    for (; rows; --rows, in += columns, out += columns) {
        float most = in[0], sum = 0;
        for (unsigned i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
        for (unsigned i = 0; i < columns; ++i) sum += out[i] = expf(in[i] - most);
        for (unsigned i = 0; i < columns; ++i) out[i] /= sum;
    }
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"softmax", softmax, METH_VARARGS, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "own", NULL, -1, functions};
PyMODINIT_FUNC PyInit_own(void) { return PyModule_Create(&module); }
"""
"""Without torch's headers, which take seconds for each submission."""
CALL = "softmax(x)"
OWN = f"""import base64, sys, torch
with open("own.so", "wb") as file:
    file.write(base64.b64decode("BUILT"))
sys.path.append(".")
import own
def softmax(given):
    out = torch.empty_like(given)
    own.softmax(given.data_ptr(), out.data_ptr(), *given.shape)
    return out
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {CALL}
"""
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
    judge: Judge, tmp_path: Path
) -> None:
    source, built = tmp_path / "own.c", tmp_path / "own.so"
    source.write_text(EXTENSION)
    headers = sysconfig.get_path("include")
    command = ["gcc", "-O3", "-shared", "-fPIC", f"-I{headers}", source, "-o", built, "-lm"]
    subprocess.run(command, check=True)
    code = OWN.replace("BUILT", base64.b64encode(built.read_bytes()).decode())
    for rules in ("kernel", "partial"):
        assert judged(judge, code, rules).outcome.category == "correct"
    beside = code.replace(CALL, f"{CALL} * torch.ones(3).prod()")
    assert judged(judge, beside, "partial").outcome.category == "correct"
    assert judged(judge, beside, "kernel", glue=0.01).outcome.kind == "torch_compute"
    few = code.replace(CALL, f"{CALL} if torch.ones(3).prod() else x")
    assert "`aten::prod` on 3 elements" in judged(judge, few, "kernel").outcome.message
    assert judged(judge, few, "kernel", glue=0.01).outcome.category == "correct"
    never = code.replace(
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
