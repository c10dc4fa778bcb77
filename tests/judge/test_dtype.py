"""Problems that are judged in another type than their file has."""

from collections.abc import Callable

import pytest

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import PACES, Facts
from kevin_env.judge.judge import Judge
from kevin_env.lint.examine import untimed
from kevin_env.outcome import Incorrect
from kevin_env.problem import Dtype, Problem, ProblemError

MATMUL = Problem(
    id="p", name="p",
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(1024, 32))
        self.register_buffer("order", torch.arange(32))
    def forward(self, x, scale):
        return (x @ self.weight)[:, self.order] * scale
def get_inputs():
    return [torch.rand(48, 1024), 0.25]
def get_init_inputs():
    return []
""",
)  # fmt: skip
SUBMISSION = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(1024, 32))
    def forward(self, x, scale):
        assert x.dtype == self.weight.dtype == torch.{dtype}
        {body}
"""
WIDE = "return ((x.float() @ self.weight.float()) * scale).to(x.dtype)"
FLOAT32 = "return (x.float() @ self.weight.float()) * scale"
NARROW = """
        total = torch.zeros(48, 32, dtype=x.dtype)
        for k in range(0, 1024, 2):
            total += x[:, k:k + 2] @ self.weight[k:k + 2]
        return total * scale
"""
Judged = Callable[[str, Dtype], Judgement]


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    return a_judge(PACES["cpu"], untimed)


def judged(judge: Judge, body: str, dtype: Dtype) -> Judgement:
    submission = Submission(code=SUBMISSION.format(dtype=dtype, body=body))
    return judge.judge(MATMUL, submission, Options(device="cpu", dtype=dtype), lambda _: None)


def facts_of(judge: Judge, problem: Problem, dtype: Dtype | None) -> Facts:
    return judge.bench.facts_of(problem.judged_as(Options(dtype=dtype))).told(judge.info, Options())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_sums_in_float32_are_accepted_in_every_type(judge: Judge, dtype: Dtype) -> None:
    outcome = judged(judge, WIDE, dtype).outcome
    assert outcome.category == "correct", outcome


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_16_bits_are_rejected(judge: Judge, dtype: Dtype) -> None:
    outcome = judged(judge, NARROW, dtype).outcome
    assert isinstance(outcome, Incorrect) and outcome.kind == "values", outcome


def test_outputs_have_the_type_of_the_references(judge: Judge) -> None:
    outcome = judged(judge, FLOAT32, "float16").outcome
    assert isinstance(outcome, Incorrect) and outcome.kind == "dtype", outcome
    assert judged(judge, FLOAT32, "float32").outcome.category == "correct"


def test_weights_and_floating_inputs_are_converted_and_nothing_else(judge: Judge) -> None:
    as_written, narrow = facts_of(judge, MATMUL, None), facts_of(judge, MATMUL, "bfloat16")
    assert as_written.weights == ("weight: float32[1024, 32]",)
    assert narrow.weights == ("weight: bfloat16[1024, 32]",)
    assert narrow.buffers == ("order: int64[32]",)
    (x, scale), outputs = narrow.cases[0].inputs, narrow.cases[0].outputs
    assert (x.dtype, scale.dtype, outputs) == ("bfloat16", "float", ("bfloat16[48, 32]",))


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("return x @ torch.ones(1024, 8)", "fails in forward: RuntimeError: expected m1 and m2"),
        ("return x.sum(1, keepdim=True).exp() * 1e3", "or infinite everywhere"),
    ],
)
def test_a_reference_that_cannot_run_in_a_type_is_refused_in_one_line(
    judge: Judge, forward: str, why: str
) -> None:
    source = MATMUL.source.replace("return (x @", f"{forward}\n        return (x @")
    problem = MATMUL.model_copy(update={"source": source.replace("rand(48", "ones(48")})
    with pytest.raises(ProblemError, match=why) as refused:
        facts_of(judge, problem, "float16")
    assert str(refused.value).startswith("p in float16: ") and "\n" not in str(refused.value)
