"""Who runs the reference and the null kernel: lent to one contest at a time, kept for the next,
ended after a fault.
"""

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
from kevin_env.judge.workers.baselines import Partners, ours
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.idle import Idle
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
def lent(partners: Partners, key: str) -> Iterator[Worker]:
    with partners.lent(key) as partner:
        partner.load(CODE, "Model")
        yield partner.worker


@pytest.fixture
def started() -> list[Worker]:
    return []


@pytest.fixture
def partners(server: ForkServer, started: list[Worker]) -> Iterator[Partners]:
    def start() -> Worker:
        started.append(Worker(server, "cpu", MEMORY))
        return started[-1]

    found = Partners(start, MOST, Lease("partners of a test"))
    yield found
    found.close()
    assert not any(each.waiting for each in started)


def test_one_that_is_free_serves_again(partners: Partners, started: list[Worker]) -> None:
    for _ in range(2):
        with lent(partners, "a") as first:
            assert first is started[0] and first.waiting
    with lent(partners, "b") as other:
        assert other is started[1]


def test_nobody_gets_one_that_is_in_use(partners: Partners, started: list[Worker]) -> None:
    with lent(partners, "a") as first, lent(partners, "a") as second:
        assert first is not second
    with lent(partners, "a"), lent(partners, "a"):
        assert len(started) == 2


def test_it_is_ended_after_a_fault_of_the_judge(partners: Partners, started: list[Worker]) -> None:
    with pytest.raises(JudgeError), lent(partners, "a"), ours():
        raise Ended
    assert not started[0].waiting
    with lent(partners, "a"):
        assert len(started) == 2


def test_it_is_kept_after_a_fault_of_the_submission(
    partners: Partners, started: list[Worker]
) -> None:
    with pytest.raises(Ended), lent(partners, "a"):
        raise Ended
    with lent(partners, "a") as again:
        assert again is started[0] and again.waiting


def test_the_one_used_longest_ago_loads_other_code_where_there_are_too_many(
    partners: Partners, started: list[Worker]
) -> None:
    for key in ("a", "b", "a", "c"):
        with lent(partners, key):
            pass
    with lent(partners, "d") as other:
        assert other is started[1]  # b
    with lent(partners, "a") as first, lent(partners, "c") as last:
        assert [first, last] == [started[0], started[2]]
    assert len(started) == MOST


def test_one_that_was_to_load_something_and_did_not_is_not_taken_for_it(
    partners: Partners, started: list[Worker]
) -> None:
    with pytest.raises(Ended), partners.lent("a"):
        raise Ended
    with partners.lent("a") as again:
        assert not again.loaded


def test_one_that_is_free_lets_go_when_it_is_asked_to(
    partners: Partners, started: list[Worker]
) -> None:
    region = SharedRegion(1 << 20, torch.device("cpu"))
    with lent(partners, "a") as first:
        first.share("inbox", region, 10)
        held = maps(first)
    with lent(partners, "b"):
        partners.rest_now()
        assert held and maps(first) < held
    with lent(partners, "a") as again:
        assert again is first and again.waiting
    region.close()


def test_one_that_is_free_lets_go_once_none_was_in_use_for_a_while(
    partners: Partners, started: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partners, "_idle", Idle(0.1, partners.rest))
    region = SharedRegion(1 << 20, torch.device("cpu"))
    with lent(partners, "b"):
        with lent(partners, "a") as first:
            first.share("inbox", region, 10)
            held = maps(first)
        time.sleep(0.5)
        assert held and maps(first) == held, "another is in use"
    deadline = time.monotonic() + 10
    while maps(first) == held and time.monotonic() < deadline:
        time.sleep(0.01)
    assert maps(first) < held
    with lent(partners, "a") as again:
        assert again is first and again.waiting
    region.close()


def test_they_let_go_while_nobody_is_timed(partners: Partners, started: list[Worker]) -> None:
    region = SharedRegion(1 << 20, torch.device("cpu"))
    with lent(partners, "a") as first:
        first.share("inbox", region, 10)
        held = maps(first)
    with partners._lease.exclusive():
        waiting = threading.Thread(target=partners.rest)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and maps(first) == held
    waiting.join(10)
    assert not waiting.is_alive() and maps(first) < held
    region.close()


def test_one_that_lets_go_is_waited_for_instead_of_another_being_started(
    partners: Partners, started: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on, taken = threading.Event(), threading.Event(), list[Worker]()
    with lent(partners, "a") as first:
        pass

    def rest(*order: object) -> None:
        asked.set()
        go_on.wait(10)

    def take() -> None:
        with lent(partners, "a") as again:
            taken.append(again)

    monkeypatch.setattr(first, "ask", rest)
    threads = [threading.Thread(target=each) for each in (partners.rest, take)]
    threads[0].start()
    assert asked.wait(10)
    threads[1].start()
    threads[1].join(0.3)
    assert not taken and len(started) == 1
    go_on.set()
    for each in threads:
        each.join(10)
    assert taken == [first]


def test_one_that_ended_while_it_was_free_is_not_lent(
    partners: Partners, started: list[Worker]
) -> None:
    with lent(partners, "a") as first:
        pass
    for pid in descendants(first.pid):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while first.waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    with lent(partners, "a") as again:
        assert again is not first and again.waiting


def test_one_that_is_in_use_at_the_end_is_ended_when_it_is_given_back(
    partners: Partners, started: list[Worker]
) -> None:
    with lent(partners, "a"):
        partners.close()
        assert started[0].waiting
    assert not started[0].waiting


def test_code_that_does_not_load_is_the_judges_failure(
    partners: Partners, started: list[Worker]
) -> None:
    with (
        pytest.raises(JudgeError, match="a process of the judge's own failed"),
        partners.lent("a") as partner,
    ):
        partner.load("1 / 0", "Model")
    assert not started[0].waiting
