"""What a reference does is counted: its products and operations, and the bytes that it reads."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.roofline.roofline import SPECIAL, Counting, find_work
from kevin_env.problem import Problem, load_problem
from kevin_env.roofline import Work

CPU = torch.device("cpu")
SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(1000, 64))
        self.unused = torch.nn.Parameter(torch.randn(50))
    def forward(self, x, *more):
        return {expression}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""
X = "torch.randn(256, 128)"
SIZE = 256 * 128 * 4


def work(expression: str, inputs: str = X, head: str = "") -> Work:
    source = f"{head}\n{SOURCE.format(expression=expression, inputs=inputs)}"
    case = Case(Problem(id="x", name="x", source=source), "main", CPU)
    case.draw_weights(1)
    return find_work(case, *case.draw_inputs("own", 1))


@pytest.mark.parametrize(
    ("expression", "inputs", "read", "written", "operations"),
    [
        ("x * 2", X, SIZE, SIZE, 256 * 128),
        ("x.sum(1)", X, SIZE, 256 * 4, 256 * 128),
        ("x.t().contiguous()", X, SIZE, SIZE, 0),
        ("x.softmax(1)", X, SIZE, SIZE, SPECIAL * 256 * 128),
        ("x.exp().log_() + x.tanh()", X, SIZE, SIZE, (3 * SPECIAL + 1) * 256 * 128),
        ("torch.nn.functional.gelu(x)", X, SIZE, SIZE, SPECIAL * 256 * 128),
        ("x.logical_not().half()", X, SIZE, SIZE // 2, 256 * 128),
        ("x.relu().relu()", X, SIZE, SIZE, 2 * 256 * 128),
        ("x[:64] * 2", X, SIZE // 4, SIZE // 4, 64 * 128),
        ("x[:, ::2] * 2", X, SIZE, SIZE // 2, 256 * 64),  # every sector has elements of both kinds
        ("x[:, ::16] * 2", X, SIZE // 2, SIZE // 16, 256 * 8),
        ("x[:, :64] + x[:, 64:]", X, SIZE, SIZE // 2, 256 * 64),
        ("x[:64] + x[:64]", X, SIZE // 4, SIZE // 4, 64 * 128),
        ("torch.zeros_like(x)", X, 0, SIZE, 0),
        ("x[more[0]]", f"{X}, torch.arange(8)", 8 * 512 + 64, 8 * 512, 0),
        ("x.index_select(0, more[0]) + x[0]", f"{X}, torch.arange(8)", 9 * 512 + 64, 8 * 512, 8 * 128),
        ("torch.nn.functional.embedding(x, self.table)", "torch.arange(10)", 80 + 10 * 256, 10 * 256, 0),
        ("torch.empty_like(x).copy_(more[0])", f"{X}, torch.randn(128)", 512, SIZE, 0),
        ("x.expand(4, 256, 128) * 2", "torch.randn(256, 128)", SIZE, 4 * SIZE, 4 * 256 * 128),
        ("x.copy_(more[0])", f"{X}, torch.randn(128)", 512, SIZE, 0),
        ("(x.abs(), x.half())", X, SIZE, SIZE + SIZE // 2, 256 * 128),
        ("x.unfold(0, 4, 2).sum(-1)", "torch.randn(64)", 256, 31 * 4, 31 * 4),
    ],
)  # fmt: skip
def test_bytes_and_operations(
    expression: str, inputs: str, read: int, written: int, operations: int
) -> None:
    found = work(expression, inputs)
    assert (found.read, found.written, found.operations, found.products) == (
        read,
        written,
        operations,
        {},
    )


def test_weights_count_where_they_are_read() -> None:
    found = work("x + self.table[:256].sum()")
    assert found.read == SIZE + 256 * 64 * 4


@pytest.mark.parametrize(
    ("expression", "head", "products"),
    [
        ("x @ x.t()", "", {"fp32": 2 * 256 * 256 * 128}),
        ("x @ x.t()", "PRECISION = 'tf32'", {"fp32": 2 * 256 * 256 * 128}),  # a CPU has none
        ("x.half() @ x.t().half()", "", {"fp16": 2 * 256 * 256 * 128}),
        ("x.bfloat16() @ x.t().bfloat16()", "", {"bf16": 2 * 256 * 256 * 128}),
        ("x.double() @ x.t().double() + (x @ x.t())", "", {"fp64": 2**24, "fp32": 2**24}),
        ("torch.nn.functional.linear(x, x)", "", {"fp32": 2**24}),
        (
            "torch.nn.functional.conv1d(x[None], torch.ones(8, 256, 3))",
            "",
            {"fp32": 2 * 8 * 256 * 3 * 126},
        ),
    ],
)
def test_products_by_what_they_are_computed_in(
    expression: str, head: str, products: dict[str, int]
) -> None:
    assert work(expression, head=head).products == products


@pytest.mark.parametrize(
    "problem",
    ["L1_1_Square_matrix_multiplication_", "L3_43_MinGPTCausalAttention", "L4_2_DeepSeek_MoE"],
)
def test_products_are_those_that_torch_counts(problem: str) -> None:
    case = Case(load_problem(problem), "cpu", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    with FlopCounterMode(display=False) as theirs:
        case.runner(skeleton, [t.clone() for t in tensors])()
    assert sum(find_work(case, skeleton, tensors).products.values()) == theirs.get_total_flops() > 0


def test_a_composite_is_counted_by_its_parts() -> None:
    a = torch.randn(8, 8)
    with torch.inference_mode(), Counting() as counted:
        torch.nn.functional.linear(a, a)
    assert counted.products == {"fp32": 2 * 8**3}


def test_counting_leaves_inputs_and_weights_alone() -> None:
    source = SOURCE.format(expression="(x.mul_(2), self.table.mul_(0) if False else x)", inputs=X)
    case = Case(Problem(id="x", name="x", source=source), "main", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    before = [t.clone() for t in (*tensors, *case.model.state_dict().values())]
    find_work(case, skeleton, tensors)
    assert all(map(torch.equal, before, (*tensors, *case.model.state_dict().values())))
