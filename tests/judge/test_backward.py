"""Problems whose gradients are judged."""

from collections.abc import Callable

import pytest

from kevin_env.judge import Options, Submission
from kevin_env.judge.api import PACES, Facts
from kevin_env.judge.judge import Judge
from kevin_env.lint.examine import untimed
from kevin_env.outcome import Incorrect, Outcome
from kevin_env.problem import Problem, ProblemError

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(24, 16)
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.frozen = torch.nn.Parameter(torch.rand(16), requires_grad=False)
        self.register_buffer("shift", torch.rand(16))
    def forward(self, pair, index, scale):
        left, right = pair
        rows = self.inner(left * right)[index] * scale
        return {"rows": rows * self.frozen + self.shift, "largest": rows.argmax(1)}
def get_inputs():
    return [[torch.randn(8, 24), torch.randn(8, 24)], torch.randint(8, (40,)), 0.5]
def get_init_inputs():
    return []
"""
PROBLEM = Problem(id="p", name="p", source=SOURCE)
RIGHT = SOURCE.replace("class Model(", "class ModelNew(")
SCALED = """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()
    @staticmethod
    def backward(ctx, upstream):
        return upstream * ctx.factor, None
"""
GRADIENTS = {
    "pair[0].grad": ("left * right", "Scaled.apply(left, 1.01) * right"),
    "pair[1].grad": ("left * right", "left * Scaled.apply(right, 1.01)"),
    "self.inner.bias.grad": (
        "self.inner(left * right)",
        "torch.nn.functional.linear(left * right, self.inner.weight, Scaled.apply(self.inner.bias, 1.01))",
    ),
    "self.inner.weight.grad": (
        "self.inner(left * right)",
        "torch.nn.functional.linear(left * right, Scaled.apply(self.inner.weight, 1.01), self.inner.bias)",
    ),
}
"""For each gradient what makes it, and nothing else, one per cent too large."""


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(PACES["cpu"], untimed)


def outcome(judge: Judge, code: str, problem: Problem = PROBLEM, **more: str) -> Outcome:
    options = Options.model_validate({"device": "cpu", "backward": True, **more})
    return judge.judge(problem, Submission(code=code), options, lambda _: None).outcome


def facts_of(judge: Judge, problem: Problem) -> Facts:
    options = Options(backward=True)
    return judge.bench.facts_of(problem.judged_as(options)).told(judge.info, options)


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_right_gradients_are_accepted(judge: Judge, dtype: str) -> None:
    found = outcome(judge, RIGHT, dtype=dtype)
    assert found.category == "correct", found


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_gradient_is_found_and_named(judge: Judge, name: str) -> None:
    found = outcome(judge, f"import torch\n{SCALED}{RIGHT.replace(*GRADIENTS[name])}")
    assert isinstance(found, Incorrect) and found.kind == "values", found
    assert found.output == f"['{name}']"


def test_the_upstream_gradient_is_not_known_before(judge: Judge) -> None:
    of_ones = "torch.ones_like(upstream)"
    code = SCALED.replace("upstream * ctx.factor", of_ones) + RIGHT
    code = f"import torch\n{code}".replace('"rows": rows *', '"rows": Scaled.apply(rows, 1.0) *')
    found = outcome(judge, code)
    assert isinstance(found, Incorrect) and found.kind == "values" and ".grad" in found.output


def test_an_output_without_a_gradient_is_no_exception(judge: Judge) -> None:
    found = outcome(judge, RIGHT.replace("+ self.shift", "+ self.shift).detach()").replace(
        '"rows": rows', '"rows": (rows'))  # fmt: skip
    assert isinstance(found, Incorrect), found
    assert (found.kind, found.output) == ("type", "['pair[0].grad']")


def test_a_wrong_output_is_named_before_its_gradients(judge: Judge) -> None:
    found = outcome(judge, RIGHT.replace("+ self.shift", "+ self.shift)[:-1]").replace(
        '"rows": rows', '"rows": (rows'))  # fmt: skip
    assert isinstance(found, Incorrect), found
    assert (found.kind, found.output) == ("shape", "['output']['rows']")


def test_weights_of_another_name_have_gradients(judge: Judge) -> None:
    found = outcome(judge, RIGHT.replace("self.inner", "self.renamed"))
    assert found.category == "correct", found


def test_a_weight_in_another_form_has_no_gradient_to_compare(judge: Judge) -> None:
    packed = """
class ModelNew(Right):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 24)
    def load_state_dict(self, state, strict=True):
        self.inner.weight.copy_(state["inner.weight"].T)
"""
    found = outcome(judge, RIGHT.replace("ModelNew", "Right") + packed)
    assert (found.category, found.kind) == ("runtime", "exception")
    assert "weights not matched: inner.weight float32[16, 24]" in found.message


def test_all_that_a_gradient_reaches_is_told(judge: Judge) -> None:
    case = facts_of(judge, PROBLEM).cases[0]
    assert [each.name for each in case.inputs] == ["pair", "index", "scale", "grad_output"]
    assert (case.inputs[3].dtype, case.inputs[3].shape) == ("float32", (40, 16))
    named = [each.partition(" (")[2] for each in case.outputs]
    assert [each[1:-2] for each in named if each] == [*GRADIENTS][:2] + [*GRADIENTS][:1:-1]


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("x.argmax(1)", "no gradient reaches a floating-point input or a parameter"),
        ("x.mul_(2)", "its reference fails in forward: RuntimeError: a leaf Variable"),
    ],
)
def test_a_reference_without_a_gradient_is_refused_in_one_line(
    judge: Judge, forward: str, why: str
) -> None:
    source = f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}
def get_inputs():
    return [torch.randn(8, 8)]
def get_init_inputs():
    return []
"""
    with pytest.raises(ProblemError, match=f"^p with backward: {why}") as refused:
        facts_of(judge, Problem(id="p", name="p", source=source))
    assert "\n" not in str(refused.value)
