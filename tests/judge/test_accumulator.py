"""The estimate of what one accumulator a sum costs is near what it really costs, and admits no
narrower numbers.
"""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from arithmetic import Replaced, running, summed_by
from comparison import wrong as fault_of
from rounding import ROUNDINGS

from kevin_env.judge.compare.accumulator import OneAccumulator
from kevin_env.judge.compare.tolerance import Tolerance, with_plain_sums

Body = Callable[..., torch.Tensor]
LONG = 1 << 14
CHANCE = torch.Generator().manual_seed(1)
uniform, normal = partial(torch.rand, generator=CHANCE), partial(torch.randn, generator=CHANCE)
BODIES: dict[str, tuple[Body, tuple[torch.Tensor, ...]]] = {
    "matmul of one sign": (torch.matmul, (uniform(16, LONG), uniform(LONG, 16))),
    "matmul": (torch.matmul, (normal(16, LONG), normal(LONG, 16))),
    "bias": (torch.nn.functional.linear, (uniform(16, LONG), normal(16, LONG), normal(16))),
    "sum": (lambda x: x.sum(1), (uniform(64, LONG),)),
    "mean": (lambda x: x.mean(1), (uniform(64, LONG),)),
    "cumsum": (lambda x: x.cumsum(1), (uniform(64, 1024),)),
    "norm": (lambda x: x.norm(dim=1), (normal(64, LONG),)),
    "variance": (lambda x: x.var(1), (normal(64, LONG),)),
    "layer norm": (lambda x: torch.nn.functional.layer_norm(x, (LONG,)), (normal(4, LONG),)),
    "layer norm, off centre": (
        lambda x: torch.nn.functional.layer_norm(x, (LONG,)),
        (4 + normal(4, LONG),),
    ),
    "softmax": (lambda x: x.softmax(1), (uniform(64, LONG),)),
    "convolution": (torch.nn.functional.conv1d, (uniform(1, 512, 80), uniform(8, 512, 33))),
    "sigmoid and sum": (lambda x: (20 * x).sigmoid().sum(1), (normal(64, LONG),)),
}


def rms(x: torch.Tensor) -> float:
    return float(x.double().square().mean().sqrt())


def compared(name: str, got: Callable[[], torch.Tensor]) -> str | None:
    body, given = BODIES[name]

    def plain(draw: int) -> torch.Tensor:
        torch.manual_seed(draw)
        with OneAccumulator():
            return body(*given)

    exact = body(*(x.double() for x in given))
    found = fault_of(body(*given), got(), oracle=lambda: exact, plain=plain)
    return None if found is None else found.kind


@pytest.mark.parametrize("name", BODIES)
def test_the_estimate_is_near_what_a_running_sum_is_off_by(name: str) -> None:
    body, given = BODIES[name]
    exact, one = body(*(x.double() for x in given)), body(*given)
    with Replaced(summed_by(running())):
        real = body(*given)
    torch.manual_seed(1)
    with OneAccumulator():
        estimate = body(*given)
    # a sum of the reference's own errors is in both
    assert rms(real - exact) < 2 * rms(estimate - one) + 2 * rms(one - exact), "too small"
    assert rms(estimate - one) < 3 * rms(real - exact) + 2 * rms(one - exact), "too large"
    assert compared(name, lambda: real) is None


def test_one_sum_of_many_whose_terms_are_alike_is_seen() -> None:
    """It is off by far more than the others, which a division by the deviation of its terms shows."""
    x = uniform(64, LONG)
    x[7] = 0.493
    with Replaced(summed_by(running())):
        real = x.sum(1)
    off = (real.double() - x.double().sum(1)).abs()
    assert off[7] > 8 * off[:7].max()
    with OneAccumulator():
        drawn = torch.stack([x.sum(1)[7] for _ in range(20)])
    assert rms(drawn - x[7].double().sum()) > 0.3 * off[7]


def test_errors_that_cancel_in_one_draw_are_seen_in_another() -> None:
    """Of two sums whose difference matters, as in a softmax that they dominate."""
    x, w = uniform(1, LONG), uniform(LONG, 2)

    def plain(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        with OneAccumulator():
            return x @ w

    product, exact = x @ w, Tolerance(0.0, math.inf, True)
    for seed in range(0, 1000, 10):
        one = with_plain_sums(exact, product, lambda draw, seed=seed: plain(seed + draw))
        both = with_plain_sums(
            exact, product.diff(), lambda draw, seed=seed: plain(seed + draw).diff()
        )
        assert both.worst > 0.15 * one.worst > 0


def test_without_it_a_long_running_sum_is_refused() -> None:
    x = torch.rand(16, 1 << 20)
    with Replaced(summed_by(running())):
        real = x.sum(1)
    assert fault_of(x.sum(1), real, oracle=lambda: x.double().sum(1)) is not None


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_narrow_operands_are_refused_where_signs_cancel_or_few_entries_are_not_zero(
    rounding: str,
) -> None:
    narrow = ROUNDINGS[rounding]
    a, b = BODIES["matmul"][1]
    assert compared("matmul", lambda: narrow(a) @ narrow(b)) == "values"
    sparse = tuple(x * (torch.rand_like(x) < 1 / 32) for x in BODIES["matmul of one sign"][1])
    BODIES["sparse"] = torch.matmul, sparse
    assert compared("sparse", lambda: narrow(sparse[0]) @ narrow(sparse[1])) == "values"
