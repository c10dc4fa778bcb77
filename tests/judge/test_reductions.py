"""Reductions of tensors piece by piece give what reducing the whole gives."""

import math

import numpy as np
import pytest
import torch

from kevin_env.judge.compare.values import (
    PIECE,
    counts_of,
    first_of,
    pieces,
    size_of,
    spread_of,
)

INF, NAN = math.inf, math.nan
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (6, 5), (2, 3, 4, 5), (1, 1, 50), (50, 1), (3, 17)]


def laid_out(x: torch.Tensor) -> list[torch.Tensor]:
    """The same numbers in order, with the first dimension last in memory, and with gaps."""
    turned = x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() else x
    return [x, turned, torch.stack((x, torch.zeros_like(x)), -1)[..., 0]]


@pytest.fixture(params=[1, 13])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setitem(PIECE, "cpu", request.param)
    return request.param


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_pieces_are_views_of_every_element_in_order(most: int) -> None:
    for shape in SHAPES:
        numbers = torch.arange(math.prod(shape)).view(shape)
        for laid in laid_out(numbers):
            found = list(pieces(laid, numbers))
            assert all(torch.equal(a, b) and 0 <= a.numel() <= most for a, b in found)
            assert torch.cat([a.flatten() for a, _ in found]).tolist() == numbers.flatten().tolist()
            storage = laid.untyped_storage().data_ptr()
            assert all(a.untyped_storage().data_ptr() == storage for a, _ in found)
            assert len(found) == 1 or all(a.numel() for a, _ in found)


def test_sizes_are_those_of_the_whole(most: int) -> None:
    for values in laid_out(normal(30, 7)):
        values[17, 3] = -9.0
        found = size_of(lambda x: 2 * x, values)
        assert found.largest == 18.0
        rms = math.sqrt(np.square(values.numpy()).mean())
        assert found.rms == pytest.approx(2 * rms, rel=1e-12)
        values[20, 1] = NAN
        found = size_of(lambda x: x, values)
        assert math.isnan(found.largest) and math.isnan(found.rms)
    assert size_of(lambda x: x, torch.tensor([1.0, -INF])).largest == INF


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_the_spread_is_that_of_the_whole(most: int, offset: float) -> None:
    """Also where it is a billionth of the mean, and where pieces differ more from each other than
    in themselves.
    """
    rising = torch.arange(280.0).view(40, 7).double()
    for drawn in (normal(40, 7), normal(280).sort().values.view(40, 7), rising):
        for values in laid_out(drawn + offset):
            count, mean, spread = spread_of(values)
            wanted = (values.numpy().astype(np.longdouble)).std(ddof=1)
            assert count == 280 and spread == pytest.approx(float(wanted), rel=1e-12)
            assert mean == pytest.approx(float(values.mean()), rel=1e-12, abs=1e-12)
    *_, spread = spread_of((normal(300) + 5).float())
    assert spread == pytest.approx(float((normal(300) + 5).float().double().std()), rel=1e-12)


def test_the_spread_is_that_of_the_finite_elements(most: int) -> None:
    values = normal(50, 7)
    values[0, :3] = torch.tensor([NAN, INF, -INF])
    values[31] = NAN
    values[49, 6] = INF
    finite = values[torch.isfinite(values)]
    count, mean, spread = spread_of(values)
    assert count == finite.numel() == 350 - 3 - 7 - 1
    assert spread == pytest.approx(float(finite.std()), rel=1e-12)
    assert mean == pytest.approx(float(finite.mean()), rel=1e-12)
    assert spread_of(torch.full((50,), NAN)) == (0, 0.0, 0.0)
    assert spread_of(torch.tensor([NAN, 3.0, NAN])) == (1, 3.0, 0.0)


def test_the_spread_of_what_is_all_the_same_is_nothing(most: int) -> None:
    """Not what the rounding of a mean leaves, against which everything would be wrong."""
    for value in (0.1, 3.0, 1e300):
        assert spread_of(torch.full((1003,), value, dtype=torch.float64)) == (1003, value, 0.0)


def test_elements_are_found_by_their_coordinates(most: int) -> None:
    places = (5, 11, 12, 40, 59)
    for shape in ((60,), (2, 3, 10), (60, 1)):
        for values in laid_out(torch.arange(60.0).view(shape)):

            def wrong(x: torch.Tensor) -> torch.Tensor:
                return torch.isin(x, torch.tensor(places))

            counts = counts_of(wrong, values)
            assert sum(counts) == 5
            first = first_of(wrong, counts, 4, values)
            assert [int(values[at]) for at in first] == [5, 11, 12, 40]
            assert first == [tuple(map(int, np.unravel_index(at, shape))) for at in places[:4]]
