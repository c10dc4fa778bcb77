import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from kevin_env.judge.compare.chunked import (
    PIECE,
    counts_of,
    first_of,
    largest_of,
    pieces,
    size_of,
    spread_of,
)

INF, NAN = math.inf, math.nan
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (6, 5), (2, 3, 4, 5), (1, 1, 50), (50, 1), (3, 17)]
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda x: x,
    "turned": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() else x,
    "apart": lambda x: torch.stack((x, torch.zeros_like(x)), -1)[..., 0],
}


@pytest.fixture(params=[1, 4, 13, 1 << 18])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setitem(PIECE, "cpu", request.param)
    return request.param


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_are_views_of_every_element_in_order(
    most: int, shape: tuple[int, ...], layout: str
) -> None:
    numbers = torch.arange(math.prod(shape)).view(shape)
    laid = LAYOUTS[layout](numbers)
    found = list(pieces(laid, numbers))
    assert all(torch.equal(a, b) and 0 <= a.numel() <= most for a, b in found)
    assert torch.cat([a.flatten() for a, _ in found]).tolist() == list(range(numbers.numel()))
    assert all(
        a.untyped_storage().data_ptr() == laid.untyped_storage().data_ptr() for a, _ in found
    )
    assert len(found) == 1 or all(a.numel() for a, _ in found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_are_those_of_the_whole(most: int, layout: str) -> None:
    values = LAYOUTS[layout](normal(30, 7))
    values[17, 3] = -9.0
    found = size_of(lambda x: 2 * x, values)
    assert found.largest == 18.0
    assert found.rms == pytest.approx(2 * math.sqrt(np.square(values.numpy()).mean()), rel=1e-12)
    values[20, 1] = NAN
    found = size_of(lambda x: x, values)
    assert math.isnan(found.largest) and math.isnan(found.rms)
    assert size_of(lambda x: x, torch.tensor([1.0, -INF])).largest == INF


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_spread_is_that_of_the_whole(most: int, layout: str, offset: float) -> None:
    """Also where it is a billionth of the mean, and where pieces differ more from each other than
    in themselves.
    """
    for values in (
        normal(40, 7),
        normal(280).sort().values.view(40, 7),
        torch.arange(280.0).view(40, 7).double(),
    ):
        values = LAYOUTS[layout](values + offset)
        count, spread = spread_of(values)
        wanted = (values.numpy().astype(np.longdouble)).std(ddof=1)
        assert count == 280 and spread == pytest.approx(float(wanted), rel=1e-12)
    count, spread = spread_of((normal(300) + 5).float())
    assert spread == pytest.approx(float((normal(300) + 5).float().double().std()), rel=1e-12)


def test_the_spread_is_that_of_the_finite_elements(most: int) -> None:
    values = normal(50, 7)
    values[0, :3] = torch.tensor([NAN, INF, -INF])
    values[31] = NAN
    values[49, 6] = INF
    finite = values[torch.isfinite(values)]
    count, spread = spread_of(values)
    assert count == finite.numel() == 350 - 3 - 7 - 1
    assert spread == pytest.approx(float(finite.std()), rel=1e-12)
    assert spread_of(torch.full((50,), NAN)) == (0, 0.0)
    assert spread_of(torch.tensor([NAN, 3.0, NAN])) == (1, 0.0)


@pytest.mark.parametrize("value", [0.1, 3.0, 1e300])
def test_the_spread_of_what_is_all_the_same_is_nothing(most: int, value: float) -> None:
    """Not what the rounding of a mean leaves, against which everything would be wrong."""
    assert spread_of(torch.full((1003,), value, dtype=torch.float64)) == (1003, 0.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(60,), (2, 3, 10), (60, 1)])
def test_elements_are_found_by_their_coordinates(
    most: int, shape: tuple[int, ...], layout: str
) -> None:
    values = LAYOUTS[layout](torch.arange(60.0).view(shape))
    wrong = (5, 11, 12, 40, 59)
    counts = counts_of(lambda x: torch.isin(x, torch.tensor(wrong)), values)
    assert sum(counts) == 5
    first = first_of(lambda x: torch.isin(x, torch.tensor(wrong)), counts, 4, values)
    assert [int(values[at]) for at in first] == [5, 11, 12, 40]
    assert first == [tuple(map(int, np.unravel_index(at, shape))) for at in wrong[:4]]
    assert [int(values[at]) for at in largest_of(lambda x: 100 - x, 3, values)] == [0, 1, 2]
    assert len(largest_of(lambda x: x, 100, values)) == 60
