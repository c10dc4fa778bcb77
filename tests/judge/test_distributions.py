"""Outliers among timed inputs."""

import pytest
import torch

from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.distributions import ENTRIES, add_outliers
from kevin_env.judge.inputs.structure import Structure, look

CPU = torch.device("cpu")


FLOATS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", [lambda x: x, torch.t, lambda x: x[:, ::2], lambda x: x[:0]])
def test_a_few_entries_of_either_sign_and_of_the_same_size_are_planted(
    dtype: torch.dtype, layout
) -> None:
    image = Image([layout(torch.full((96, 128), 3.0)).to(dtype)], CPU)
    (tensor,) = image.tensors
    before, image_before = tensor.double().clone(), image.bytes.clone()
    add_outliers(image.tensors, [Structure(frozenset({"floating", "finite"}))], 7)
    others = tensor.double()[tensor.double() != before]
    assert len(others) <= ENTRIES and (len(others) > ENTRIES // 2 or tensor.numel() == 0)
    assert tensor.numel() == 0 or (
        bool((others < 0).any()) and 1.5 < float(others.square().mean().sqrt()) < 6
    )
    assert int((image.bytes != image_before).sum()) <= len(others) * tensor.element_size()


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
