"""What every test may use: one pool of real judges for the whole session, what a judge keeps ready,
the mark `gpu`.
"""

import gc
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

import pytest
from judges import QUICK, SECRET, Lent

from kevin_env.judge.api import Pace, gpu_present
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.pools.local import LocalPool
from kevin_env.pools.remote import STEADY

if TYPE_CHECKING:
    from kevin_env.judge.bench import Bench
    from kevin_env.judge.judge import Clock, Judge


@pytest.fixture(scope="session")
def pool() -> Iterator[LocalPool]:
    """Real judges of this machine's devices, each started when a test first needs it; quick ones
    without a GPU.
    """
    with LocalPool(pace=None if gpu_present() else QUICK) as judges:
        yield judges


@pytest.fixture(scope="module", autouse=True)
def _what_is_left_open() -> Iterator[None]:
    """Unix sockets that a module's tests leave open fail that module, not a later one during which
    they are collected. Those are of processes and event loops; clients of HTTP close theirs when
    they are collected.
    """
    yield
    with warnings.catch_warnings():
        left = r"unclosed <socket\.socket fd=\d+, family=1,"
        warnings.filterwarnings("error", left, ResourceWarning)
        gc.collect()
    gc.freeze()  # the next collection, of new objects only, takes milliseconds


@pytest.fixture
def one_pool(pool: LocalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are called in this process have the session's pool: none starts judges of its
    own.
    """
    monkeypatch.setattr("kevin_env.app.arguments.named_pool", lambda *_: nullcontext(pool))


@pytest.fixture
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """No endpoint of a model is set from outside."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[LevelName], ForkServer]]:
    """One fork server, whose candidates have the sandbox level that is asked for."""
    started: list[ForkServer] = []

    def at(level: LevelName) -> ForkServer:
        if not started:
            started.append(ForkServer("cpu"))
        return Lent(started[0], level)

    os.environ["KEVIN_TEST_SECRET"] = SECRET  # as a key of the judge's user would be
    try:
        yield at
        for server in started:
            server.close()
    finally:
        del os.environ["KEVIN_TEST_SECRET"]


@pytest.fixture(scope="module")
def a_bench(servers: Callable[[LevelName], ForkServer]) -> "Iterator[Callable[[], Bench]]":
    """Starts what a judge of this CPU keeps ready, in this process; closed at the end, where it is
    not before.
    """
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    with ExitStack() as started:

        def start() -> Bench:
            device = torch.device("cpu")
            bench = Bench(device, inform(device), Lent(servers("root")), QUICK)
            started.callback(bench.close)
            return bench

        yield start


@pytest.fixture(scope="module")
def bench(a_bench: "Callable[[], Bench]") -> "Bench":
    """One for all tests of a module, which change nothing of it."""
    return a_bench()


@pytest.fixture(scope="module")
def a_judge(servers: Callable[[LevelName], ForkServer]) -> "Iterator[Callable[..., Judge]]":
    """Starts a quick judge of this CPU in this process; arguments as of `Judge`."""
    from kevin_env.judge.judge import Judge

    with ExitStack() as started:

        def start(pace: Pace = QUICK, clock: "Clock | None" = None) -> "Judge":
            judge = Judge("cpu", Lent(servers("root")), pace, clock)
            started.callback(judge.close)
            return judge

        yield start


@pytest.fixture(scope="module")
def untimed_judge(a_judge: "Callable[..., Judge]") -> "Judge":
    """A judge that only says what is wrong, for all tests of a module."""
    from kevin_env.lint.examine import untimed

    return a_judge(clock=untimed)


def pytest_configure(config: pytest.Config) -> None:
    # A run that was started in the background ignores Ctrl-C, one under nohup SIGHUP, and so would
    # every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ |= STEADY  # threads of torch that spin would take the processors of other tests
    _have_a_temporary_folder(config)


def _have_a_temporary_folder(config: pytest.Config) -> None:
    """Device locks lie there: tests that run at once, or beside a judge of this user's, do not
    wait for each other.
    """
    before = tempfile.gettempdir()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", before)
    folder = os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="kevin-tests-")

    def back() -> None:
        os.environ["TMPDIR"] = tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(back)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names of tests are read, and are sent between processes: some parameters have a million
    characters.
    """
    long = val.decode("latin-1") if isinstance(val, bytes) else val
    return (
        f"{long[:40].encode('unicode_escape').decode()}..."
        if isinstance(long, str) and len(long) > 100
        else None
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes run tests, a file's stay together, as they share fixtures, unless
    they say otherwise.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(
                pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath)))
            )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not gpu_present():
        pytest.skip("no CUDA device here")
