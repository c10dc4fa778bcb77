"""Trivial answers are made from less than the work, and each output has those that make sense for it."""

from collections.abc import Callable

import pytest
import torch

from kevin_env.judge.lint.answers import Scene, trivial_answers


def answers(expected: torch.Tensor, *inputs: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    scene = Scene(expected, list(inputs), lambda: expected + 1, lambda: expected + 2)
    return dict(trivial_answers(scene))


def made(name: str, expected: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
    answer = answers(expected, *inputs)[name]()
    assert (answer.shape, answer.dtype) == (expected.shape, expected.dtype)
    return answer


Y = torch.tensor([[1.0, -2.0, 4.0], [0.0, 8.0, -3.0]])


def test_every_answer_of_a_matrix() -> None:
    assert list(answers(Y, Y)) == [
        "zeros", "ones", "input 0", "the first element everywhere", "the mean", "the mean of axis 0",
        "the mean of axis 1", "half of it, then zeros", "half of it, twice", "its signs", "the previous output",
        "another seed's output",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("zeros", [[0, 0, 0], [0, 0, 0]]),
        ("ones", [[1, 1, 1], [1, 1, 1]]),
        ("the first element everywhere", [[1, 1, 1], [1, 1, 1]]),
        ("the mean of axis 0", [[0.5, 3, 0.5], [0.5, 3, 0.5]]),
        ("the mean of axis 1", [[1, 1, 1], [5 / 3, 5 / 3, 5 / 3]]),
        ("half of it, then zeros", [[1, -2, 4], [0, 0, 0]]),
        ("half of it, twice", [[1, -2, 4], [1, -2, 4]]),
        ("its signs", [[1, -1, 1], [0, 1, -1]]),
        ("another seed's output", [[2, -1, 5], [1, 9, -2]]),
        ("the previous output", [[3, 0, 6], [2, 10, -1]]),
    ],
)
def test_what_each_answer_is(name: str, wanted: list[list[float]]) -> None:
    torch.testing.assert_close(made(name, Y), torch.tensor(wanted, dtype=torch.float32))


def test_halves_of_an_odd_number_of_elements() -> None:
    y = torch.arange(1, 6)
    assert made("half of it, then zeros", y).tolist() == [1, 2, 3, 0, 0]
    assert made("half of it, twice", y).tolist() == [1, 2, 3, 1, 2]


def test_an_input_is_reshaped_cut_or_broadcast_and_cast() -> None:
    y = torch.zeros(2, 3)
    assert made("input 0", y, torch.arange(6)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made("input 0", y, torch.arange(10).view(5, 2)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made("input 1", y, torch.zeros(1), torch.arange(3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert made("input 0", torch.zeros(2, dtype=torch.int64), torch.tensor([1.6, torch.inf])).tolist() == [2, 0]
    assert made("input 0", torch.zeros(1), torch.tensor([2 + 3j])).tolist() == [2]
    assert "input 0" not in answers(y, torch.arange(4))


def test_what_is_the_output_by_its_form_is_left_out() -> None:
    single = answers(torch.tensor(3.0))
    assert {"zeros", "ones", "its signs", "another seed's output"} <= set(single)
    assert not any("mean" in name or "half" in name or "first" in name for name in single)
    assert "the mean of axis 0" not in answers(torch.randn(1, 5))
    assert "its signs" not in answers(torch.tensor([True, False]))
    assert "its signs" not in answers(torch.tensor([1, 0, -1]))


def test_only_a_matrix_that_is_not_symmetric_by_formula_is_transposed() -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(made("it transposed", x), x.T)
    assert "it transposed" not in answers(x @ x.T)
    assert "it transposed" not in answers(torch.randn(4, 3))
    nearly = 1 + 1e-3 * x  # within many a tolerance, and yet not symmetric
    assert "it transposed" in answers(nearly)
    assert "it transposed" in answers(torch.arange(9).view(3, 3))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float8_e4m3fn])
def test_every_dtype_has_answers(dtype: torch.dtype) -> None:
    y = torch.tensor([[0.0, 1.0], [3.0, 0.0]]).to(dtype)
    scene = Scene(y, [y.flatten()], lambda: y, lambda: y)
    for name, answer in trivial_answers(scene):
        assert (answer().shape, answer().dtype) == (y.shape, dtype), name
    assert answers(torch.tensor([1 + 2j, 3 - 1j]))["the mean"]().tolist() == [2 + 0.5j] * 2
