"""Float32 built with `--use_fast_math` is right; what is coarser than its documented errors is not."""

import pytest
import torch
from comparison import wrong
from fast_math import FastMath, uniform, upward
from rounding import ROUNDINGS

from kevin_env.judge.compare.values import Mismatch
from kevin_env.judge.inputs.cases import usable_distributions
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.problem import Problem

FORM = """
import torch
from torch import nn
from torch.nn import functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(256, 128), nn.Linear(128, 64)
        self.norm, self.groups = nn.LayerNorm(256), nn.GroupNorm(8, 256)
    def forward(self, x):
        return {body}
def get_inputs():
    return [torch.randn(48, 256)]
def get_init_inputs():
    return []
"""
EXPRESSIONS = {
    "softmax": "torch.softmax(x, 1)",
    "log-softmax": "torch.log_softmax(x, 1)",
    "logsumexp": "torch.logsumexp(x, 1)",
    "layer norm": "self.norm(x)",
    "group norm": "self.groups(x)",
    "RMS norm": "x / torch.sqrt(x.square().mean(1, keepdim=True) + 1e-5)",
    "L2 norm": "x / torch.norm(x, dim=1, keepdim=True)",
    "sigmoid": "torch.sigmoid(x)",
    "SiLU": "F.silu(x)",
    "softplus": "F.softplus(x)",
    "ELU": "F.elu(x)",
    "SELU by hand": "1.05 * torch.where(x > 0, x, 1.67 * (torch.exp(x) - 1))",
    "log-sigmoid": "F.logsigmoid(x)",
    "cross entropy": "F.cross_entropy(x, x.argmax(1))",
    "a product, sigmoid and logsumexp": "torch.logsumexp(self.other(torch.sigmoid(self.linear(x))), 1)",
    "a product, SiLU and scaling": "F.silu(self.linear(x)) * 2",
    "a product and softmax": "torch.softmax(self.linear(x), 1)",
    "a quotient": "self.linear(x) / (1 + x[:, :128].abs())",
}  # fmt: skip


def opened(body: str) -> Case:
    case = Case(
        Problem(id="p", name="p", source=FORM.replace("{body}", body)), "main", torch.device("cpu")
    )
    case.draw_weights(1)
    return case


def compared(got: torch.Tensor, expected: Expected) -> Mismatch | None:
    return wrong(expected.output, got, oracle=lambda: expected.oracle, plain=expected.plain)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_documented_errors_of_fast_math_pass(name: str) -> None:
    case = opened(EXPRESSIONS[name])
    for distribution in usable_distributions(case, 1):
        drawn = case.draw_inputs(distribution, 2)
        expected = case.expect(*drawn, 0)
        for errors in (uniform, upward):
            with FastMath(errors):
                got = case.answer(*drawn, 0)
            found = compared(got, expected)
            assert found is None, (distribution, errors.__name__, found)


COARSE = {
    "tanh.approx": ("torch.tanh(self.linear(x))", None),
    "sin.approx": ("torch.sin(x)", None),
    "cos.approx": ("torch.cos(x)", None),
    "GELU by tanh": ("F.gelu(x)", "F.gelu(x, approximate='tanh')"),
    **dict.fromkeys(ROUNDINGS, (
        "self.linear(x)", "F.linear(round(x), round(self.linear.weight), self.linear.bias)"
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", COARSE)
def test_what_is_coarser_is_refused_on_some_distribution(name: str) -> None:
    body, other = COARSE[name]
    case, found = opened(body), []
    if other is not None:
        cheat = opened(other)
        vars(cheat.module)["round"] = ROUNDINGS.get(name)
    for distribution in usable_distributions(case, 1):
        drawn = case.draw_inputs(distribution, 2)
        expected = case.expect(*drawn, 0)
        if other is None:
            with FastMath(coarse=True):
                got = case.answer(*drawn, 0)
        else:
            got = cheat.answer(*drawn, 0)
        found.append(compared(got, expected))
    assert any(found)
