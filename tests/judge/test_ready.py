"""The places beside the lane of submissions that have a context."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from kevin_env.judge.ready import Interrupted, Ready

NO_PROCESS = 1 << 30


class Candidate:
    """Stands where a worker does.

    Attributes:
        ended: Why it was ended.
    """

    pid = NO_PROCESS
    ended: str | None = None

    def end(self, limit: str) -> None:
        self.ended = limit


def test_no_more_are_ready_than_there_are_places() -> None:
    ready, third = Ready(2), threading.Event()

    def take() -> None:
        with ready.place(Candidate()):  # type: ignore[arg-type]
            third.set()

    with ThreadPoolExecutor(1) as threads, ExitStack() as places:
        first = places.enter_context(ExitStack())
        first.enter_context(ready.place(Candidate()))  # type: ignore[arg-type]
        places.enter_context(ready.place(Candidate()))  # type: ignore[arg-type]
        waits = threads.submit(take)
        assert not third.wait(0.1) and len(ready) == 2
        first.close()
        waits.result(10)
    assert third.is_set() and not len(ready)


def test_those_that_are_ready_have_their_share_of_the_memory_in_order_of_arrival() -> None:
    ready, entered = Ready(4, memory=10), list[str]()
    leave = {name: threading.Event() for name in ("large", "small")}

    def take(name: str, memory: int) -> None:
        with ready.place(Candidate(), memory):  # type: ignore[arg-type]
            entered.append(name)
            assert leave[name].wait(10)

    with ThreadPoolExecutor(2) as threads:
        with ready.place(Candidate(), 99):  # type: ignore[arg-type]
            large = threads.submit(take, "large", 9)
            while len(ready._line) < 1:
                pass
            small = threads.submit(take, "small", 2)
            while len(ready._line) < 2:
                pass
            assert not entered
        while not entered:
            pass
        assert entered == ["large"] and len(ready) == 1
        leave["large"].set()
        large.result(10)
        leave["small"].set()
        small.result(10)
    assert entered == ["large", "small"]


def test_whoever_needs_the_device_alone_ends_those_that_are_ready_and_keeps_others_out() -> None:
    ready, waits, other = Ready(4), Candidate(), threading.Event()

    def take() -> None:
        with ready.place(Candidate()):  # type: ignore[arg-type]
            other.set()

    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(Interrupted),
        ready.place(waits),  # type: ignore[arg-type]
    ):
        with ready.closed():
            assert waits.ended is not None
            comes = threads.submit(take)
            assert not other.wait(0.1)
        comes.result(10)
    assert other.is_set()


def test_an_error_of_one_that_was_ended_is_not_its_own() -> None:
    ready = Ready(1)
    with pytest.raises(Interrupted), ready.place(Candidate()):  # type: ignore[arg-type]
        with ready.closed():
            pass
        raise RuntimeError("its process is gone")
    with pytest.raises(RuntimeError), ready.place(Candidate()):  # type: ignore[arg-type]
        raise RuntimeError("its own")
