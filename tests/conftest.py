"""What every test may use: one pool of real judges for the whole session, and the mark `gpu`."""

import signal
from collections.abc import Iterator

import pytest

from kevin_env.judge.pool import LocalPool, gpu_present


@pytest.fixture(scope="session")
def pool() -> Iterator[LocalPool]:
    """Real judges of this machine's devices, each started when a test first needs it."""
    with LocalPool() as judges:
        yield judges


def pytest_configure() -> None:
    # A run that was started in the background ignores Ctrl-C, and so would every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not gpu_present():
        pytest.skip("no CUDA device here")
