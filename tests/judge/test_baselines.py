"""Baselines: lent for one measurement at a time, kept for the next, ended after a fault."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from loaded import MEMORY

from kevin_env.judge import JudgeError
from kevin_env.judge.handshake.memory import SharedRegion
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.baselines import Baselines, Idle, as_judge_error
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker

CODE = "class Model: pass\n"


def maps(worker: Worker) -> int:
    """How often a candidate has mapped memory that the judge shared."""
    (pid,) = [pid for pid in descendants(worker.pid) if pid != worker.pid]
    return Path(f"/proc/{pid}/maps").read_text().count("memfd:")


MOST = 3


@contextmanager
def lent(baselines: Baselines, key: str) -> Iterator[Worker]:
    with baselines.lent(key) as baseline:
        baseline.load(CODE, "Model")
        yield baseline.worker


@pytest.fixture
def started() -> list[Worker]:
    return []


@pytest.fixture
def baselines(server: ForkServer, started: list[Worker]) -> Iterator[Baselines]:
    def start() -> Worker:
        started.append(Worker(server, "cpu", MEMORY))
        return started[-1]

    found = Baselines(start, MOST, Lease("baselines of a test"))
    yield found
    found.close()
    assert not any(each.waiting for each in started)


def test_one_that_is_free_serves_again(baselines: Baselines, started: list[Worker]) -> None:
    for _ in range(2):
        with lent(baselines, "a") as first:
            assert first is started[0] and first.waiting
    with lent(baselines, "b") as other:
        assert other is started[1]


def test_nobody_gets_one_that_is_in_use(baselines: Baselines, started: list[Worker]) -> None:
    with lent(baselines, "a") as first, lent(baselines, "a") as second:
        assert first is not second
    with lent(baselines, "a"), lent(baselines, "a"):
        assert len(started) == 2


def test_it_is_ended_after_a_fault_of_the_judge(
    baselines: Baselines, started: list[Worker]
) -> None:
    with pytest.raises(JudgeError), lent(baselines, "a"), as_judge_error():
        raise Ended
    assert not started[0].waiting
    with lent(baselines, "a"):
        assert len(started) == 2


def test_it_is_kept_after_a_fault_of_the_submission(
    baselines: Baselines, started: list[Worker]
) -> None:
    with pytest.raises(Ended), lent(baselines, "a"):
        raise Ended
    with lent(baselines, "a") as again:
        assert again is started[0] and again.waiting


def test_the_one_used_longest_ago_loads_other_code_where_there_are_too_many(
    baselines: Baselines, started: list[Worker]
) -> None:
    for key in ("a", "b", "a", "c"):
        with lent(baselines, key):
            pass
    with lent(baselines, "d") as other:
        assert other is started[1]  # b
    with lent(baselines, "a") as first, lent(baselines, "c") as last:
        assert [first, last] == [started[0], started[2]]
    assert len(started) == MOST


def test_one_that_is_free_lets_go_when_it_is_asked_to(
    baselines: Baselines, started: list[Worker]
) -> None:
    region = SharedRegion(1 << 20, torch.device("cpu"))
    with lent(baselines, "a") as first:
        first.share("inbox", region, 10)
        held = maps(first)
    with lent(baselines, "b"):
        baselines.rest_now()
        assert held and maps(first) < held
    with lent(baselines, "a") as again:
        assert again is first and again.waiting
    region.close()


def test_they_let_go_while_nobody_is_timed(baselines: Baselines, started: list[Worker]) -> None:
    region = SharedRegion(1 << 20, torch.device("cpu"))
    with lent(baselines, "a") as first:
        first.share("inbox", region, 10)
        held = maps(first)
    with baselines._lease.exclusive():
        waiting = threading.Thread(target=baselines.rest)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and maps(first) == held
    waiting.join(10)
    assert not waiting.is_alive() and maps(first) < held
    region.close()


def test_one_that_ended_while_it_was_free_is_not_lent(
    baselines: Baselines, started: list[Worker]
) -> None:
    with lent(baselines, "a") as first:
        pass
    for pid in descendants(first.pid):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while first.waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    with lent(baselines, "a") as again:
        assert again is not first and again.waiting


def test_one_that_is_in_use_at_the_end_is_ended_when_it_is_given_back(
    baselines: Baselines, started: list[Worker]
) -> None:
    with lent(baselines, "a"):
        baselines.close()
        assert started[0].waiting
    assert not started[0].waiting


def test_code_that_does_not_load_is_the_judges_failure(
    baselines: Baselines, started: list[Worker]
) -> None:
    with (
        pytest.raises(JudgeError, match="a process of the judge's own failed"),
        baselines.lent("a") as baseline,
    ):
        baseline.load("1 / 0", "Model")
    assert not started[0].waiting


SHORT, LONG = 0.05, 60.0


class Called:
    """Notes each call; `seen` waits for one."""

    def __init__(self) -> None:
        self.count = 0
        self._event = threading.Event()

    def __call__(self) -> None:
        self.count += 1
        self._event.set()

    def seen(self, seconds: float) -> bool:
        return self._event.wait(seconds)


def test_it_comes_once_after_the_last_that_was_under_way() -> None:
    then = Called()
    idle = Idle(SHORT, then)
    with idle:
        with idle:
            pass
        assert not then.seen(6 * SHORT)
    assert then.seen(10) and not threading.Event().wait(4 * SHORT) and then.count == 1


def test_what_begins_in_time_puts_it_off() -> None:
    then = Called()
    idle = Idle(LONG, then)
    with idle:
        pass
    first = idle._timer
    assert first is not None and first.is_alive()
    with idle:
        first.join(10)
        assert not first.is_alive() and idle._timer is None
    assert then.count == 0
    idle.close()


@pytest.mark.parametrize("before", [True, False])
def test_nothing_comes_once_it_is_closed(before: bool) -> None:
    then = Called()
    idle = Idle(SHORT, then)
    with idle:
        if before:
            idle.close()
    idle.close()
    assert not then.seen(6 * SHORT)
