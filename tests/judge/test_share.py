"""An output that spans orders of magnitude: what is small has a small share of the tolerance."""

from collections.abc import Callable

import pytest
import torch
from comparison import wrong

from kevin_env.judge.compare.outputs import Allowed
from kevin_env.judge.compare.tolerance import tolerance_of
from kevin_env.judge.compare.values import PIECE


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def passes(got: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor) -> bool:
    return wrong(reference, got.to(reference.dtype), oracle=lambda: exact) is None


STEEP = drawn(60, 300)
SCALES = 10.0 ** torch.arange(-6, 2).double()
HEADS = drawn(2, 8, 32, 16).double() * SCALES[:, None, None]
PRODUCT = (drawn(64, 200, seed=1).double() * 1e-7 ** torch.rand(64, 1)) @ drawn(
    200, 48, seed=2
).double()
ROWS = drawn(64, 256).double() * torch.where(torch.arange(64) < 4, 1e-6, 1.0)[:, None].double()
ZEROED: dict[str, tuple[torch.Tensor, torch.Tensor]] = {  # exact output, what is zeroed
    "an exponential": ((6 * STEEP.double()).exp(), STEEP < 0.5),
    "small exponentials only": ((6 * STEEP.double()).exp(), STEEP < -1),
    "powers": (STEEP.double() ** 15, STEEP.abs() < 0.7),
    "heads": (HEADS, (HEADS != 0) & (SCALES[:, None, None] < 1e-5)),
    "a few rows": (ROWS, (torch.arange(64) < 4)[:, None].expand(64, 256)),
    "a column": (HEADS[0, :, :, 0].T, (SCALES < 1e-5).expand(32, 8)),
    "a row of a product": (PRODUCT, (PRODUCT.abs().amax(1, keepdim=True) < 1e-3).expand(64, 48)),
    "a part of complex numbers": (torch.complex(HEADS[0, 0], 1e-6 * HEADS[1, 7]), HEADS[0, 0] < 9),
    "beside an offset": ((6 * STEEP.double()).exp() + 1e-3, STEEP < 0),
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROED)
@pytest.mark.parametrize("piece", [1 << 18, 100])
def test_what_is_small_may_not_be_left_out(
    name: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PIECE, "cpu", piece)
    exact, small = ZEROED[name]
    reference = exact.to(torch.complex64 if exact.is_complex() else torch.float32)
    got = torch.complex(exact.real, 0 * exact.imag) if exact.is_complex() else exact * ~small
    assert bool(small.any()) and passes(reference, reference, exact)
    assert not passes(got, reference, exact)


HONEST: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = {
    # the honest output, the reference's, the exact one
    "an exponential by exp2": lambda: (
        torch.exp2(STEEP * (6 * 1.4426950408889634)), torch.exp(6 * STEEP), (6 * STEEP.double()).exp()
    ),
    "exp(x) - 1 for expm1": lambda: (
        (4 * STEEP).exp() - 1, (4 * STEEP).expm1(), (4 * STEEP.double()).expm1()
    ),
    "log(1 + exp(x)) for softplus": lambda: (
        (1 + (8 * STEEP).exp()).log(), torch.nn.functional.softplus(8 * STEEP),
        torch.nn.functional.softplus(8 * STEEP.double()),
    ),
    "a sigmoid by tanh": lambda: (
        0.5 + 0.5 * (50 * STEEP).tanh(), (100 * STEEP).sigmoid(), (100 * STEEP.double()).sigmoid()
    ),
    "denormal numbers flushed": lambda: (
        (-60 * STEEP.abs()).exp().where((-60 * STEEP.abs()) > -87, 0), (-60 * STEEP.abs()).exp(),
        (-60 * STEEP.double().abs()).exp(),
    ),
    "heads": lambda: (HEADS.float() * (1 + 2e-7), HEADS.float(), HEADS),
    "a product in another order": lambda: (
        sum((A_ROWS[:, i::7].float() @ B_COLUMNS[i::7].float() for i in range(7)), torch.zeros(())),
        A_ROWS.float() @ B_COLUMNS.float(), A_ROWS @ B_COLUMNS,
    ),
}  # fmt: skip
A_ROWS = drawn(64, 210, seed=3).double() * 1e-7 ** torch.rand(64, 1)
B_COLUMNS = drawn(210, 48, seed=4).double() * 1e-5 ** torch.rand(1, 48)
A_ROWS, B_COLUMNS = A_ROWS.float().double(), B_COLUMNS.float().double()


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_passes_where_scales_differ(name: str) -> None:
    assert passes(*HONEST[name]())


def test_where_scales_do_not_differ_there_is_one_tolerance() -> None:
    for exact in (
        drawn(64, 64), drawn(64, 64) + 1e6, drawn(64, 64).relu(), drawn(64, 64).square(),
        drawn(64, 64) * torch.linspace(0.5, 2, 64), torch.rand(64, 64), drawn(4096), drawn(300, 3),
        torch.cat((drawn(64, 64), torch.zeros(64, 64))), drawn(64, 1), drawn(8),
    ):  # fmt: skip
        assert tolerance_of(exact, exact.double(), 1.0, "ieee")[1] is None


def test_a_known_tolerance_is_that_of_the_scale() -> None:
    """Another draw of an exponential has another largest element, and with it another scale."""
    allowed: Allowed = {}
    for seed in range(4):
        x = drawn(60, 300, seed=seed)
        reference, exact = torch.exp(6 * x), (6 * x.double()).exp()
        asked = list[None]()

        def oracle(exact: torch.Tensor = exact, asked: list[None] = asked) -> torch.Tensor:
            asked.append(None)
            return exact

        assert wrong(reference, reference, oracle=oracle, allowed=allowed) is None
        assert len(asked) == (seed == 0)
        zeroed = reference.where(x > 0.5, 0)
        assert wrong(reference, zeroed, oracle=oracle, allowed=allowed) is not None


def test_the_error_that_is_shown_is_that_of_the_element_furthest_beyond_its_share() -> None:
    exact = (6 * STEEP.double()).exp()
    reference = exact.float()
    small = (0, int(STEEP[0].argmin()))
    got = reference.clone()
    got[small] = 1.0
    found = wrong(reference, got, oracle=lambda: exact)
    assert found is not None and found.tolerance is not None and found.wrong == 1
    assert found.worst_error == pytest.approx(1.0, rel=1e-3) and found.tolerance < 1e-2
    assert found.differences[0].index == small


def test_plain_sums_count_where_an_output_is_not_nearly_zero() -> None:
    """A softmax over large numbers has one element that is not; the others have no error."""
    logits = torch.full((2048,), -200.0)
    logits[506] = 0.0
    exact = logits.double().softmax(0)
    reference = exact.float()
    plain = reference * (1 + 1e-6)
    got = reference * (1 - 2e-6)
    assert wrong(reference, got, oracle=lambda: exact) is not None
    assert wrong(reference, got, oracle=lambda: exact, plain=lambda _: plain) is None
