"""What every test may use: one pool of real judges for the whole session, what a judge keeps ready, the mark `gpu`."""

import signal
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from kevin_env.judge.choice import gpu_present
from kevin_env.judge.pool import LocalPool

if TYPE_CHECKING:
    from kevin_env.judge.bench import Bench


@pytest.fixture(scope="session")
def pool() -> Iterator[LocalPool]:
    """Real judges of this machine's devices, each started when a test first needs it."""
    with LocalPool() as judges:
        yield judges


@pytest.fixture
def one_pool(pool: LocalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are called in this process have the session's pool: none starts judges of its own."""
    monkeypatch.setattr("kevin_env.app.arguments.LocalPool", lambda: nullcontext(pool))


@pytest.fixture(scope="session")
def bench() -> "Iterator[Bench]":
    """What a judge of this CPU keeps ready, in this process."""
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    device = torch.device("cpu")
    bench = Bench(device, inform(device))
    yield bench
    bench.close()


def pytest_configure() -> None:
    # A run that was started in the background ignores Ctrl-C, and so would every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not gpu_present():
        pytest.skip("no CUDA device here")
