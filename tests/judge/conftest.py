"""Judges in this process, and submissions that run in real candidates."""

import time
from collections.abc import Callable, Iterator

import pytest
from loaded import MEMORY, SECONDS, Ran, Submit

from kevin_env.judge.judge import Judge
from kevin_env.judge.sandbox.attempts import PROTECTIONS
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker


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
