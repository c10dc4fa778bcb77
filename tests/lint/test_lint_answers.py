"""Trivial answers are made from less than the work, and each output has those that make sense for
it.
"""

import math
from collections.abc import Iterator

import pytest
import torch

from kevin_env.judge.compare.values import PIECE
from kevin_env.lint.answers import Answer, trivial_answers
from kevin_env.lint.target import spread_of_all, wide


def answers(expected: torch.Tensor, *inputs: torch.Tensor) -> dict[str, Answer]:
    return dict(trivial_answers(expected, list(inputs), lambda: expected + 1, lambda: expected + 2))


def made(name: str, expected: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
    found = answers(expected, *inputs)[name]()
    assert found is not None and (found.shape, found.dtype) == (expected.shape, expected.dtype)
    return found


Y = torch.tensor([[1.0, -2.0, 4.0], [0.0, 8.0, -3.0]])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("zeros", [[0, 0, 0], [0, 0, 0]]),
        ("ones", [[1, 1, 1], [1, 1, 1]]),
        ("the first element everywhere", [[1, 1, 1], [1, 1, 1]]),
        ("the mean of axis 0", [[0.5, 3, 0.5], [0.5, 3, 0.5]]),
        ("the mean of axis 1", [[1, 1, 1], [5 / 3, 5 / 3, 5 / 3]]),
        ("the output's first half and zeros", [[1, -2, 4], [0, 0, 0]]),
        ("the output's first half twice", [[1, -2, 4], [1, -2, 4]]),
        ("the output's signs", [[1, -1, 1], [0, 1, -1]]),
        ("another seed's output", [[2, -1, 5], [1, 9, -2]]),
        ("the previous output", [[3, 0, 6], [2, 10, -1]]),
    ],
)
def test_what_each_answer_is(name: str, wanted: list[list[float]]) -> None:
    torch.testing.assert_close(made(name, Y), torch.tensor(wanted, dtype=torch.float32))


def test_an_input_is_reshaped_cut_or_broadcast_and_cast() -> None:
    y = torch.zeros(2, 3)
    assert made("input 0", y, torch.arange(6)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made("input 0", y, torch.arange(10).view(5, 2)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made("input 1", y, torch.zeros(1), torch.arange(3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert made(
        "input 0", torch.zeros(2, dtype=torch.int64), torch.tensor([1.6, torch.inf])
    ).tolist() == [2, 0]
    assert made("input 0", torch.zeros(1), torch.tensor([2 + 3j])).tolist() == [2]
    assert answers(y, torch.arange(4))["input 0"]() is None


def test_what_is_the_output_by_its_form_is_left_out() -> None:
    single = answers(torch.tensor(3.0))
    assert {"zeros", "ones", "the output's signs", "another seed's output"} <= set(single)
    assert not any("mean" in name or "half" in name or "first" in name for name in single)
    assert "the mean of axis 0" not in answers(torch.randn(1, 5))
    assert "the output's signs" not in answers(torch.tensor([True, False]))
    assert "the output's signs" not in answers(torch.tensor([1, 0, -1]))


def test_only_a_matrix_that_is_not_symmetric_by_formula_is_transposed() -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(made("the output transposed", x), x.T)
    assert "the output transposed" not in answers(x @ x.T)
    assert "the output transposed" not in answers(torch.randn(4, 3))
    nearly = 1 + 1e-3 * x  # within many a tolerance, and yet not symmetric
    assert "the output transposed" in answers(nearly)
    assert "the output transposed" in answers(torch.arange(9).view(3, 3))


def layouts(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same numbers in every order of memory."""
    yield x
    yield x.transpose(0, -1).contiguous().transpose(0, -1)
    yield torch.stack((x, torch.zeros_like(x)), -1)[..., 0]
    yield x[:1].expand(x.shape)
    if x.is_complex():
        yield x.conj()


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.bfloat16, torch.float8_e5m2, torch.complex64, torch.bool, torch.int64],
)
def test_answers_and_spreads_are_those_of_the_whole(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in small pieces, and of what does not lie in order."""
    drawn = 4 * torch.randn(
        3, 5, 7, generator=torch.Generator().manual_seed(2), dtype=torch.complex128
    )
    x = drawn.to(dtype) if dtype.is_complex else drawn.real.to(dtype)
    for most in (2, 40, 1 << 18):
        monkeypatch.setitem(PIECE, "cpu", most)
        for y in layouts(x):
            in_order = y.resolve_conj().contiguous()
            for name in [name for name in answers(y, y.mT) if not name.endswith("output")]:
                one, other = (wide(made(name, each, each.mT)) for each in (y, in_order))
                torch.testing.assert_close(one, other, msg=name)
            if dtype.is_floating_point or dtype.is_complex:
                assert spread_of_all(y) == pytest.approx(wide(y).std().item())
    if dtype == torch.float64:
        x[1, 1, 1] = math.nan
        assert math.isnan(spread_of_all(x))
