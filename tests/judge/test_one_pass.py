"""The judge's own kernels on a GPU compute what its passes on a CPU do.

Without a GPU, Triton interprets them.
"""

import math
import os
import subprocess
import sys
from functools import partial

import pytest
import torch

from kevin_env.judge.compare import share as shares
from kevin_env.judge.compare import values
from kevin_env.judge.inputs.distributions import redraw
from kevin_env.judge.inputs.structure import look

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INF, NAN = math.inf, math.nan


INTERPRETED = bool(os.environ.get("TRITON_INTERPRET"))
runs = pytest.mark.skipif(DEVICE == "cpu" and not INTERPRETED, reason="see the test below")


@pytest.mark.skipif(DEVICE == "cuda" or INTERPRETED, reason="the kernels run themselves")
def test_without_a_gpu_the_kernels_are_interpreted() -> None:
    """In another process: Triton decides at its import."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "passed" in ran.stdout


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@runs
@pytest.mark.parametrize(
    "tensor",
    [
        drawn(37, 129), drawn(5000).half(), drawn(3000).bfloat16() * 100 + 1000,
        torch.full((3000,), 3.3), torch.full((5,), NAN), torch.tensor([NAN, 1.0, 2.0, INF, -INF]),
        drawn(100, 70).double() * 1e10 + 1e12, torch.ones(1),
    ],
    ids=["normal", "float16", "offset", "equal", "nan", "not finite", "float64", "one"],
)  # fmt: skip
def test_a_spread_is_that_of_a_cpu(tensor: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    count, mean, spread = values.spread_of(tensor)
    monkeypatch.setattr(values, "one_pass", lambda *_: True)
    found = values.spread_of(tensor.to(DEVICE))
    assert found[0] == count
    assert found[1:] == pytest.approx((mean, spread), rel=1e-9, abs=1e-12 * abs(mean))
    assert (found[2] == 0) == (spread == 0)


FP8 = torch.float8_e4m3fn


@runs
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, FP8])
@pytest.mark.parametrize("rounding", [0.0, 2.0**-3])
@pytest.mark.parametrize("shared", [False, True])
def test_a_difference_is_that_of_a_cpu(
    dtype: torch.dtype, rounding: float, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = drawn(37, 129)
    got, wanted = own.to(dtype), own.double() + 0.3 * drawn(37, 129, seed=1)
    share = drawn(37, 129, seed=2).abs() + 0.1 if shared else None
    for wide in (torch.float32, torch.float64):
        find = partial(values.difference_of, wide=wide, rounding=rounding)
        here = find(got, wanted, share)
        off = (got.to(wide) - wanted.to(wide)).abs()
        part = 1.0 if share is None else share
        beyond = (off - rounding * wanted.to(wide).abs()) / part
        assert here.largest == pytest.approx(float(beyond.max()), rel=1e-6)
        with monkeypatch.context() as patch:
            patch.setattr(values, "one_pass", lambda *_: True)
            part = None if share is None else share.to(DEVICE)
            there = find(got.to(DEVICE), wanted.to(DEVICE), part)
        assert there.largest == pytest.approx(here.largest, rel=1e-6)
        assert there.rms == pytest.approx(here.rms, rel=1e-6)


@runs
@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("lost", [NAN, INF])
def test_a_difference_that_is_not_finite_has_no_size(
    lost: float, on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "one_pass", lambda *_: on_gpu)
    got = drawn(3000).to(DEVICE)
    wanted = got.clone()
    wanted[2999] = lost
    for one, other in ((got, wanted), (wanted, got), (wanted, wanted)):
        size = values.difference_of(one, other, wide=torch.float32, rounding=0.25)
        assert not math.isfinite(size.largest)


@runs
@pytest.mark.parametrize("apart", [(), (0,), (0, 2)])
def test_shares_are_those_of_a_cpu(apart: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.exp(4 * drawn(40, 3, 50)) * (torch.exp(torch.arange(50.0)) if 2 in apart else 1)
    if 0 in apart:
        tensor[3] *= 1e4
    _, mean, spread = values.spread_of(tensor)
    wanted = shares.share_of(tensor, mean, spread)
    monkeypatch.setattr(shares, "one_pass", lambda *_: True)
    found = shares.share_of(tensor.to(DEVICE), mean, spread)
    assert wanted is not None and found is not None
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=0)


@runs
@pytest.mark.parametrize("distribution", ["signed", "wide", "offset", "negative"])
@pytest.mark.parametrize(
    "own",
    [drawn(60, 60), drawn(60, 60).bfloat16(), drawn(60, 60).sigmoid(), -drawn(60, 60).exp()],
    ids=["normal", "bfloat16", "of a range", "one sign"],
)
def test_values_are_redrawn_as_on_a_cpu(
    distribution: str, own: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own.masked_fill(torch.arange(60) % 7 == 0, 0)
    structure = look(own)
    wanted = redraw(own, distribution, structure, key=1234567)
    monkeypatch.setattr("kevin_env.judge.inputs.distributions.one_pass", lambda *_: True)
    found = redraw(own.to(DEVICE), distribution, structure, key=1234567)
    assert ((found.cpu() == 0) == (wanted == 0)).all()
    torch.testing.assert_close(found.cpu(), wanted)


PREPARED = """
import torch
from kevin_env.judge.compare import kernels, tolerance, values
from triton import knobs

kernels.prepare(torch.device("cuda", 0))
knobs.compilation.listener = lambda **compiled: print(compiled["src"].name)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x = torch.randn(500, 70, device="cuda", dtype=dtype)
    values.difference_of(x, x.double(), torch.ones_like(x).float(), wide=torch.float64)
    values.difference_of(x, x, wide=torch.float32)
    tolerance.scale_of(x)
"""


@pytest.mark.gpu
def test_what_most_outputs_need_is_compiled_before() -> None:
    command = [sys.executable, "-c", PREPARED]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
