"""A real fork server, and submissions that run in real candidates of it."""

import os
import time
from collections.abc import Iterator

import pytest
from loaded import MEMORY, SECONDS, SECRET, Ran, Submit

from kevin_env.judge.worker import ForkServer, Trouble, Worker


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    os.environ["KEVIN_TEST_SECRET"] = SECRET  # as a key of the judge's user would be
    try:
        started = ForkServer("cpu")
        yield started
        started.close()
    finally:
        del os.environ["KEVIN_TEST_SECRET"]


@pytest.fixture
def submit(server: ForkServer) -> Iterator[Submit]:
    """Loads a submission's code into a fresh candidate."""
    workers: list[Worker] = []

    def run(code: str, seconds: float = SECONDS, memory: int = MEMORY) -> Ran:
        ran = Ran(Worker(server, "cpu", memory))
        workers.append(ran.worker)
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
