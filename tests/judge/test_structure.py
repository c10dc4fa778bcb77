"""What draws of an input have in common is found, stated, and kept by every distribution."""

import pytest
import torch

from kevin_env.judge.inputs.distributions import redraw
from kevin_env.judge.inputs.structure import Structure, look

N = 96


def eye_like() -> torch.Tensor:
    return torch.eye(N)


def symmetric() -> torch.Tensor:
    square = torch.randn(N, N)
    return (square + square.T) / 2


def infinite_mask() -> torch.Tensor:
    return torch.zeros(N, N).masked_fill(torch.ones(N, N).triu(1).bool(), float("-inf"))


MAKERS = {
    "normal": (lambda: torch.randn(N, N), ()),
    "uniform": (lambda: torch.rand(N, N), ("in [0, 1]",)),
    "both signs, bounded": (lambda: 2 * torch.rand(N, N) - 1, ("in [-1, 1]",)),
    "small normal": (lambda: 0.05 * torch.randn(N, N), ()),
    "sigmoid": (lambda: torch.randn(N, N).sigmoid(), ("in [0, 1]",)),
    "lower": (lambda: torch.randn(N, N).tril(), ("lower triangular",)),
    "upper": (lambda: torch.randn(2, N, N).triu(), ("upper triangular",)),
    "diagonal": (lambda: torch.randn(N).diag(), ("diagonal",)),
    "symmetric": (symmetric, ("symmetric",)),
    "repeated": (
        lambda: torch.randn(N).expand(N, N), ("all slices along dimension 0 are the same",),
    ),
    "positive": (lambda: torch.randn(N, N).square(), ("never negative",)),
    "negative": (lambda: -torch.randn(N, N).exp(), ("never positive",)),
    "sorted": (lambda: torch.randn(N, N).sort(dim=1).values, ("sorted, rising",)),
    "falling": (
        lambda: torch.randn(N, N).sort(dim=1, descending=True).values, ("sorted, falling",),
    ),
    "probabilities": (
        lambda: torch.randn(N, N).softmax(1), ("sums to 1 along dimension 1", "never negative"),
    ),
    "half": (lambda: torch.rand(N, N).half(), ("in [0, 1]",)),
    "labels": (lambda: torch.randint(0, 2, (N,)).float() * 2 - 1, ("whole numbers", "in [-1, 1]")),
    "permutation": (lambda: torch.randperm(N).float(), ("a permutation of 0, 1, ..., n - 1",)),
    "number": (lambda: torch.randn(()), ()),
    "number of one sign": (lambda: torch.rand(()) ** 9, ()),
    "integers": (lambda: torch.randint(0, 9, (N,)), ()),
    "identity": (eye_like, ("diagonal", "symmetric", "whole numbers", "in [0, 1]")),
    "one-hot": (
        lambda: torch.nn.functional.one_hot(torch.randint(0, 9, (N,)), 9).float(),
        ("sums to 1 along dimension 1",),
    ),
    "infinities": (infinite_mask, ()),
    "zeros at random": (lambda: torch.randn(N, N) * (torch.rand(N, N) < 0.5), ("zeros",)),
}  # fmt: skip


def seen(name: str) -> tuple[torch.Tensor, Structure]:
    make = MAKERS[name][0]
    torch.manual_seed(1)
    found = look(make()).merged(look(make())).merged(look(make()))
    return make(), found


@pytest.mark.parametrize("name", MAKERS)
def test_a_structure_is_stated(name: str) -> None:
    told = seen(name)[1].stated()
    if not MAKERS[name][1]:
        assert told == ()
    for text in MAKERS[name][1]:
        assert any(text in each for each in told), told


@pytest.mark.parametrize("name", MAKERS)
def test_every_distribution_keeps_it(name: str) -> None:
    own, structure = seen(name)
    low, high = structure.bounds
    for distribution in ("signed", "wide", "offset"):
        drawn = redraw(own, distribution, structure, 5)
        assert drawn.shape == own.shape and drawn.dtype == own.dtype
        assert torch.equal(drawn, own) == structure.kept
        if structure.kept:
            continue
        assert bool((drawn[own == 0] == 0).all())
        again = look(drawn)
        assert structure.forms <= again.forms and structure.alike <= again.alike
        assert structure.summing <= again.summing
        assert again.high <= max(high, 0) and again.low >= min(low, 0)
        assert low < 0 or again.low >= 0


def test_an_offset_in_a_range_admits_a_variance_as_a_difference_of_squares() -> None:
    own = torch.rand(1 << 16)
    drawn = redraw(own, "offset", look(own), 5)
    assert 10 < float(drawn.square().mean() / drawn.var()) < 100


def test_equal_entries_stay_equal_wherever_they_lie() -> None:
    own = torch.randn(8, 8).repeat_interleave(4, 0).repeat_interleave(4, 1)
    drawn = redraw(own, "wide", look(own), 5)
    assert torch.equal(drawn, drawn[::4, ::4].repeat_interleave(4, 0).repeat_interleave(4, 1))
    assert len(drawn.unique()) == 64


def test_a_distribution_draws_other_values_for_another_key_and_independent_ones() -> None:
    own = torch.randn(1 << 16)
    one, other = (redraw(own, "signed", look(own), key) for key in (5, 6))
    for left, right in ((one, other), (one, own), (one[1:], one[:-1])):
        assert abs(float(torch.corrcoef(torch.stack([left, right]))[0, 1])) < 0.02


def test_an_input_of_one_sign_is_mostly_zero_where_signs_cannot_cancel() -> None:
    for own in (torch.rand(8, 3200), torch.rand(512, 512)):
        share = 1 - (32 / max(own.shape)) ** 0.5
        assert abs(look(redraw(own, "signed", look(own), 5)).zeros - share) < 0.02
    away = 1 + torch.rand(256, 256)  # a divisor, perhaps
    assert look(redraw(away, "signed", look(away), 5)).low >= 1


def test_nothing_is_stated_of_a_few_values() -> None:
    assert look(torch.rand(3)).stated() == ()
