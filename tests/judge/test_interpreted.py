"""Triton kernels on a CPU: what the compiler for a GPU would refuse for its Python is refused."""

import pytest
from test_hang import SOFTMAX

from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge

CODE = """
import torch
import triton
import triton.language as tl
WIDTH = tl.constexpr(512)
SCALE = 1.0
SWITCH = False
@triton.jit
def softmax(x, y, n, DEBUG: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, WIDTH)
    inside = tl.arange(0, WIDTH) < n
    e = tl.exp(tl.load(x + at, mask=inside, other=-float("inf")))
    BODY
    tl.store(y + at, e / tl.sum(e, 0), mask=inside)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], False)
        return y
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("SCALE: tl.constexpr = 1.0; e = e * SCALE", ""),
        ("if DEBUG: e = e * SCALE", ""),
        ("e = e * SCALE", "Cannot access global variable SCALE"),
        ("try: e = e + 0\n    except ValueError: pass", "unsupported AST node type: Try"),
    ],
)
def test_what_the_compiler_refuses_is_refused(judge: Judge, body: str, kind: str) -> None:
    code = CODE.replace("BODY", body)
    options = Options(device="cpu", inputs="shipped", call_timeout=60.0)
    outcome = judge.judge(SOFTMAX, Submission(code=code), options, lambda _: None).outcome
    if not kind:
        assert outcome.category == "correct", outcome
    else:
        assert (outcome.category, outcome.kind, outcome.line) == ("compile", "jit", 13), outcome
        assert kind in outcome.message
