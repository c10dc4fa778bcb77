"""Outliers among timed inputs, and the input sets that have them."""

import pytest
import torch

from kevin_env.judge.drawing import draw_set
from kevin_env.judge.handshake.handshake import Drawn
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS, ENTRIES, add_outliers
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.inputs.structure import Structure, look
from kevin_env.problem import Problem

CPU = torch.device("cpu")


FLOATS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2,
]  # fmt: skip


LAYOUTS = [lambda x: x, torch.t, lambda x: x[:, ::2], lambda x: x[:0]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_few_entries_of_either_sign_and_of_the_same_size_are_planted(dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        image = Image([layout(torch.full((96, 128), 3.0)).to(dtype)], CPU)
        (tensor,) = image.tensors
        before, image_before = tensor.double().clone(), image.bytes.clone()
        add_outliers(image.tensors, [Structure(frozenset({"floating", "finite"}))], 7)
        others = tensor.double()[tensor.double() != before]
        changed = int((image.bytes != image_before).sum())
        assert len(others) <= ENTRIES and changed <= len(others) * tensor.element_size()
        if tensor.numel():
            assert len(others) > ENTRIES // 2 and bool((others < 0).any())
            assert 1.5 < float(others.square().mean().sqrt()) < 6


def test_what_is_no_floating_point_number_stays() -> None:
    tensors = [
        torch.arange(4096),
        torch.ones(4096, dtype=torch.bool),
        torch.ones(4096, dtype=torch.complex64),
    ]
    image = Image(tensors, CPU)
    add_outliers(image.tensors, list(map(look, tensors)), 7)
    assert all(torch.equal(a, b) for a, b in zip(image.tensors, tensors, strict=True))


def test_what_is_planted_keeps_the_structure() -> None:
    uniform = torch.rand(128, 128)
    given = [
        uniform.tril(),
        (uniform + uniform.T) / 2,
        torch.randint(0, 9, (128, 128)).float(),
        uniform.softmax(1),
    ]
    image = Image(given, CPU)
    add_outliers(image.tensors, list(map(look, given)), 7)
    triangle, *tied = image.tensors
    assert not torch.equal(triangle, given[0]) and torch.equal(triangle, triangle.tril())
    assert triangle.min() >= 0 and triangle.max() <= 1
    assert all(torch.equal(a, b) for a, b in zip(tied, given[1:], strict=True))


SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.rand(96, 128)]
def get_init_inputs():
    return []
"""
CASE = Case(Problem(id="p", source=SOURCE, name="p"), "main", CPU)
CASE.draw_weights(1)


def drawn(distribution: str = "own", number: int = 1, **change: object) -> Drawn:
    named = {"admitted": list(DISTRIBUTIONS), "secret": "ab", **change}
    return draw_set(CASE, distribution, number=number, **named)  # type: ignore[arg-type]


def entries_apart(one: Drawn, other: Drawn) -> int:
    return int((one.image.tensors[0] != other.image.tensors[0]).sum())


def test_inputs_as_they_are_timed_have_planted_entries_where_the_problem_admits_them() -> None:
    without = drawn(admitted=["own", "wide"])
    assert ENTRIES // 2 < entries_apart(drawn(), without) <= ENTRIES
    seed = seed_from("ab", "main", "own", 1)
    assert torch.equal(without.image.tensors[0], CASE.draw_inputs("own", seed)[1][0])
    for distribution in set(DISTRIBUTIONS) - {"own"}:
        others = drawn(distribution), drawn(distribution, admitted=["own"])
        assert entries_apart(*others) == 0


def test_an_input_set_follows_from_its_secret_and_number() -> None:
    one = drawn()
    assert entries_apart(one, drawn()) == 0 and drawn().seed == one.seed
    for other in drawn(number=2), drawn(secret="ac"):
        assert entries_apart(one, other) > 96 * 128 // 2 and other.seed != one.seed


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_seed_of_a_call_draws_other_inputs_than_those_of_the_call(distribution: str) -> None:
    """The candidate knows it before it is called."""
    given = drawn(distribution, admitted=["own"])
    (other,) = CASE.draw_inputs(distribution, given.seed)[1]
    assert int((given.image.tensors[0] != other).sum()) > other.numel() // 3
