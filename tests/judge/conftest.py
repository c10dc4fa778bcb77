"""Real fork servers, and submissions that run in real candidates of them."""

import os
import time
from collections.abc import Callable, Iterator

import pytest
from loaded import MEMORY, SECONDS, SECRET, Ran, Submit

from kevin_env.judge.launcher import ForkServer
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.trouble import Trouble
from kevin_env.judge.worker import Worker


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[LevelName], ForkServer]]:
    """One fork server for each level of the sandbox that is asked for."""
    started: dict[LevelName, ForkServer] = {}

    def start(level: LevelName) -> ForkServer:
        return started.setdefault(level, started.get(level) or ForkServer("cpu", level))

    os.environ["KEVIN_TEST_SECRET"] = SECRET  # as a key of the judge's user would be
    try:
        yield start
        for server in started.values():
            server.close()
    finally:
        del os.environ["KEVIN_TEST_SECRET"]


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
        if "missing" in ran.worker.sandbox.model_dump().values():
            pytest.skip("no sandbox here, and what is tried would do harm outside")
        start = time.monotonic()
        path = str(ran.worker.folder / "submission.py")
        try:
            ran.worker.ask("load", seconds, path=path, code=f"{code}\nclass ModelNew: pass\n", entry="ModelNew")
        except Trouble as trouble:
            ran.end = trouble
        ran.seconds = time.monotonic() - start
        return ran

    yield run
    for worker in workers:
        worker.close()
