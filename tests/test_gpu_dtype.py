"""Types and gradients on a GPU. All skip themselves without one."""

from typing import Any

import pytest
from corpus import FOLDER, read_entry

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.outcome import Correct, RulesViolation
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, data_folder

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(280)]

RMS_NORM = read_entry(FOLDER / "honest/rms_norm_backward_triton.py")
ZEROS = RMS_NORM.code.replace("return of_x, of_weight", "return of_x.zero_(), of_weight.zero_()")
KEPT = RMS_NORM.code.replace(
    "        return of_x, of_weight",
    "        kept.setdefault(x.shape, (of_x, of_weight))\n"
    "        return tuple(each.clone() for each in kept[x.shape])",
).replace("class RMSNorm", "kept = {}\n\n\nclass RMSNorm")
OF_TORCH = RMS_NORM.code.replace(
    "return of_x, of_weight", "return of_x, (upstream * x * scales[:, None]).sum(0)"
)
DIFFERENCE = Problem(
    id="difference", name="difference",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return (a - b) ** 2
def get_inputs():
    return [torch.randn(4096, 4096), torch.randn(4096, 4096)]
def get_init_inputs():
    return []
""",
)  # fmt: skip
MATMUL = Problem(
    id="matmul", name="matmul",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs():
    return [torch.rand(1024, 4096), torch.rand(4096, 1024)]
def get_init_inputs():
    return []
""",
)  # fmt: skip
PRODUCT = """
import torch
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, N, K, TILE: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), {total})
    for start in range(0, K, STEP):
        k = start + tl.arange(0, STEP)
        left = tl.load(a + row * K + k[None, :])
        right = tl.load(b + k[:, None] * N + column)
        total += tl.dot(left, right, input_precision="ieee").to({total})
    tl.store(c + row * N + column, total.to(c.dtype.element_ty))

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = a.new_empty(a.shape[0], b.shape[1])
        grid = (c.shape[0] // 64, c.shape[1] // 64)
        product[grid](a, b, c, c.shape[1], a.shape[1], TILE=64, STEP=32)
        return c
"""


def judged(pool: LocalPool, problem: Problem, code: str, **more: Any) -> Judgement:
    """A submission under the rules `kernel`."""
    options = Options.model_validate({"device": "cuda", "rules": "kernel", **more})
    return pool.submit(problem, Submission(code=code), options).result(250)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_sums_in_float32_are_accepted_and_in_16_bits_are_not(pool: LocalPool, dtype: str) -> None:
    wide = judged(pool, MATMUL, PRODUCT.format(total="tl.float32"), dtype=dtype)
    assert isinstance(wide.outcome, Correct), wide.outcome
    narrow = "tl.float16" if dtype == "float32" else f"tl.{dtype}"
    outcome = judged(pool, MATMUL, PRODUCT.format(total=narrow), dtype=dtype).outcome
    assert outcome.category == "correctness", outcome


@pytest.mark.parametrize("baseline", ["eager", "compile"])
@pytest.mark.parametrize("replay", ["auto", "never"])
def test_a_forward_and_a_backward_pass_are_judged_as_one_call(
    pool: LocalPool, baseline: str, replay: str
) -> None:
    both = judged(
        pool, RMS_NORM.task, RMS_NORM.code, backward=True, baseline=baseline, replay=replay
    )
    forward = judged(pool, RMS_NORM.task, RMS_NORM.code, baseline=baseline, replay=replay)
    one, other = both.outcome, forward.outcome
    assert isinstance(one, Correct) and isinstance(other, Correct), (one, other)
    assert one.submission_seconds and other.submission_seconds
    assert one.submission_seconds > 1.5 * other.submission_seconds
    assert both.flags == ()


def test_a_backward_pass_has_a_process_of_its_own(pool: LocalPool) -> None:
    """Autograd needs a device, which the process that is recorded does not have."""
    found = judged(pool, RMS_NORM.task, RMS_NORM.code, backward=True)
    assert (found.outcome.category, found.run) == ("correct", "own process")
    assert found.unrecorded == "RuntimeError in the code"


@pytest.mark.parametrize("replay", ["auto", "never"])
@pytest.mark.parametrize("code", [ZEROS, KEPT], ids=["zeros", "kept"])
def test_gradients_that_are_not_computed_are_wrong(pool: LocalPool, code: str, replay: str) -> None:
    outcome = judged(pool, RMS_NORM.task, code, backward=True, replay=replay).outcome
    assert (outcome.category, outcome.kind) == ("correctness", "values"), outcome


@pytest.mark.parametrize("replay", ["auto", "never"])
def test_torch_in_a_backward_pass_is_seen_where_it_runs(pool: LocalPool, replay: str) -> None:
    outcome = judged(pool, RMS_NORM.task, OF_TORCH, backward=True, replay=replay).outcome
    assert isinstance(outcome, RulesViolation) and "aten::mul" in outcome.message, outcome


@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_the_examples_with_a_backward_pass_are_right(pool: LocalPool, language: str) -> None:
    code = (data_folder("prompts") / f"examples/backward/{language}.py").read_text()
    found = judged(pool, DIFFERENCE, code, backward=True)
    assert isinstance(found.outcome, Correct), found.outcome
