"""What counts as computing the same, from the text of a reference alone."""

import contextlib

import pytest
from pairs import COPIES, TASK, module

from kevin_env.retrieval.operations import RetrievalError, near_copies, operations


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_computes_the_same(name: str) -> None:
    assert (
        operations(COPIES[name], "ScaledHead") == operations(TASK) == ("linear", "mul", "softmax")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("return torch.softmax(x, 1)", "return x.softmax(dim=-1)"),
        ("return F.layer_norm(x, (4,))", "return nn.LayerNorm(4)(x)"),
        ("return F.relu_(x)", "return torch.relu(x.clone().contiguous())"),
        ("return torch.mm(x, y)", "return x @ y.transpose(0, 1)"),
        ("return torch.bmm(x, y)", "return torch.matmul(y.float(), x)"),
        ("return x + y * 3", "z = 7 * y; w = torch.add(x, z); return w.view(-1)"),
        ("x += y; return x", "return torch.add(x, y)"),
        ("return -x", "return torch.neg(x)"),
        ("assert x.size(0) > 1; return x.sum()", "return torch.sum(y, dim=0)"),
    ],
)
def test_spelling_does_not_matter(one: str, other: str) -> None:
    assert operations(module(one)) == operations(module(other)) != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("return x.sum(1)", "return x.amax(1)"),
        ("return torch.relu(x @ y)", "return torch.sigmoid(x @ y)"),
        ("return torch.relu(x @ y)", "return x @ y"),
        ("return (x - y).square().mean()", "return (x - y).abs().mean()"),
    ],
)
def test_other_operations_do(one: str, other: str) -> None:
    assert not near_copies(operations(module(one)), operations(module(other)))


def test_what_forward_reaches_is_unfolded() -> None:
    source = """
import torch
from torch import nn
from torch.nn.functional import gelu as activate

def scaled(t, by):
    return t * by

class Inner(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, n, 3), nn.BatchNorm2d(n), nn.ReLU())
    def forward(self, t):
        return self.net(t)

class Base(nn.Module):
    def finish(self, t):
        return activate(t)

class Model(Base):
    def __init__(self, n):
        super().__init__()
        self.first = Inner(n)
        self.rest = nn.ModuleList([nn.Tanh() for _ in range(n)])
        self.act = torch.sigmoid
        self.unused = nn.Linear(n, n)
    def forward(self, t):
        t = scaled(self.first(t), 2)
        for layer in self.rest:
            t = layer(t)
        return self.finish(self.act(t))
"""
    assert operations(source) == (
        "conv2d", "batchnorm", "relu", "mul", "tanh", "call", "sigmoid", "gelu",
    )  # fmt: skip


def test_code_that_is_not_reached_is_not_read() -> None:
    extended = (
        TASK
        + "\n\nclass Decoy(nn.Module):\n    def forward(self, x):\n        return x.cumsum(0).exp()\n"
    )
    assert operations(extended) == operations(TASK)


def test_one_changed_operation_in_a_long_reference_is_still_a_copy() -> None:
    names = [
        "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "erf", "sqrt", "floor", "ceil",
        "round",
    ]  # fmt: skip
    chain = "return x." + ".".join(f"{name}()" for name in names)
    assert near_copies(
        operations(module(chain)), operations(module(chain.replace("cos()", "tan()")))
    )
    assert not near_copies(
        operations(module(chain)), operations(module(chain.replace("cos().tanh().sigmoid().", "")))
    )


@pytest.mark.parametrize(
    "source",
    [
        "class Model:\n    def forward(self, x):\n        return self.forward(x) + f(x)\ndef f(x):\n    return f(x)\n",
        "class A(B):\n    pass\nclass B(A):\n    pass\nclass Model(B):\n    def forward(self, x): return self.g(x)\n",
        "class Model:\n    pass\n",
        "",
        "x = " + "-" * 50_000 + "1",
        "x = 1\0",
        "def f(:",
    ],
    ids=["recursion", "bases in a circle", "no forward", "empty", "deep", "null byte", "broken"],
)
def test_any_text_is_read_or_refused(source: str) -> None:
    with contextlib.suppress(RetrievalError):
        assert isinstance(operations(source), tuple)


@pytest.mark.parametrize(
    ("body", "many"), [("f{0}(x) + f{0}(x * 2)", 2000), ("f{0}(x) or f{0}(x)", 0)]
)
def test_helpers_that_call_helpers_end(body: str, many: int) -> None:
    lines = [f"def f{n}(x):\n    return {body.format(n + 1)}" for n in range(40)]
    source = "\n".join([*lines, "def f40(x):\n    return x.view(-1)", module("return f0(x)")])
    assert len(operations(source)) == many
