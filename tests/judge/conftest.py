"""Judges in this process, and submissions that run in real candidates."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from judges import QUICK, Lent
from loaded import MEMORY, SECONDS, Ran, Submit

from kevin_env.judge.api import Pace
from kevin_env.judge.lane.judge import Clock, Judge
from kevin_env.judge.sandbox.attempts import PROTECTIONS
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker

if TYPE_CHECKING:
    from serving import Serve


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Serve]":
    """See `serving.Serve`."""
    from serving import served

    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:

        def start(*arguments: Any, **more: Any) -> Any:
            return stack.enter_context(served(*arguments, **more))

        yield start


@pytest.fixture(scope="module")
def a_judge(servers: Callable[[LevelName], ForkServer]) -> Iterator[Callable[..., Judge]]:
    """Starts a quick judge of this CPU in this process; arguments as of `Judge`."""
    with ExitStack() as started:

        def start(pace: Pace = QUICK, clock: Clock | None = None) -> Judge:
            judge = Judge("cpu", Lent(servers("root")), pace, clock)
            started.callback(judge.close)
            return judge

        yield start


@pytest.fixture(scope="module")
def judge(a_judge: Callable[..., Judge]) -> Judge:
    """One for all tests of a module, which leave it as it was."""
    return a_judge()


@pytest.fixture(scope="session")
def level() -> LevelName | None:
    """The level that candidates must have; None: the best that there is."""
    return None


@pytest.fixture
def server(servers: Callable[[LevelName], ForkServer], level: LevelName | None) -> ForkServer:
    return servers(level or "root")


@pytest.fixture
def submit(server: ForkServer, level: LevelName | None) -> Iterator[Submit]:
    """Loads a submission's code into a fresh candidate."""
    workers: list[Worker] = []

    def run(code: str, seconds: float = SECONDS, memory: int = MEMORY) -> Ran:
        ran = Ran(Worker(server, "cpu", memory))
        workers.append(ran.worker)
        if level not in (None, ran.worker.level):
            pytest.skip(f"no level {level} here")
        if len(ran.worker.held) < len(PROTECTIONS):
            pytest.skip("no sandbox here, and what is tried would do harm outside")
        start = time.monotonic()
        path = str(ran.worker.folder / "submission.py")
        try:
            ran.worker.ask(
                "load", seconds, path=path, code=f"{code}\nclass ModelNew: pass\n", entry="ModelNew"
            )
        except CandidateError as error:
            ran.end = error
        ran.seconds = time.monotonic() - start
        return ran

    yield run
    for worker in workers:
        worker.close()
