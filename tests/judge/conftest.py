"""A real fork server, and submissions that run in real candidates of it."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kevin_env.judge.worker import ForkServer, Trouble, Worker

SECRET = "the-judges-own-secret-b07d1c"
MEMORY = 4 << 30
SECONDS = 20.0


@dataclass
class Ran:
    """A submission that was loaded into a candidate.

    Attributes:
        worker: The candidate, still there.
        end: What became of loading; None when it went well.
        seconds: How long that took.
    """

    worker: Worker
    end: Trouble | None = None
    seconds: float = 0.0
    log: str = ""

    def closed(self) -> "Ran":
        """Ends the candidate; `log` is whole then."""
        self.worker.close()
        self.log = self.worker.log
        return self


Submit = Callable[..., Ran]


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
