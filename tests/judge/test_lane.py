"""The lane holds across processes, so some of these tests hold it in other processes."""

import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kevin_env.judge.lane import Lane, holder_of

HOLD = """
import sys
from kevin_env.judge.lane import Lane
with Lane(sys.argv[1]).entered():
    print("held", flush=True)
    sys.stdin.read()
"""
BUSY = """
import sys, threading
from kevin_env.judge.lane import Lane
lane, stays = Lane(sys.argv[1]), 0
def stay():
    global stays
    while True:
        with lane.entered():
            stays += 1
            print(stays, flush=True)
            threading.Event().wait(0.05)
for _ in range(4):
    threading.Thread(target=stay, daemon=True).start()
sys.stdin.read()
"""
Start = Callable[[str], "subprocess.Popen[str]"]
SECONDS = 20.0


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def start(name: str) -> Iterator[Start]:
    """Starts a process with a lane of the same device, which ends with its stdin."""
    with ExitStack() as started:

        def run(code: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-c", code, name]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield run


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


class Visitor:
    """A thread that stays in a lane until it is released."""

    def __init__(self, lane: Lane) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()
        self._lane = lane
        self.thread = threading.Thread(target=self._stay, daemon=True)
        self.thread.start()

    def _stay(self) -> None:
        with self._lane.entered():
            self.entered.set()
            self.released.wait(SECONDS)


def test_one_is_in_the_lane_at_a_time_in_order_of_arrival(name: str) -> None:
    lane, visitors = Lane(name), list[Visitor]()
    for count in range(1, 5):
        visitors.append(Visitor(lane))
        while len(lane.line) < count - 1:
            pass
    for number, visitor in enumerate(visitors):
        assert visitor.entered.wait(SECONDS)
        assert not any(later.entered.is_set() for later in visitors[number + 1 :])
        visitor.released.set()


def test_who_leaves_comes_back_after_those_that_wait(name: str) -> None:
    lane = Lane(name)
    with lane.entered():
        other = Visitor(lane)
        while not len(lane.line):
            pass
        assert not other.entered.is_set()
        other.released.set()
        with lane.left():
            pass
        assert other.entered.is_set()
        assert not len(lane.line)


def test_an_error_inside_leaves_the_lane(name: str) -> None:
    lane = Lane(name)
    with pytest.raises(ValueError), lane.entered():
        raise ValueError
    with lane.entered():
        pass


def test_it_excludes_other_processes_and_their_death_frees_it(name: str, start: Start) -> None:
    holder = start(HOLD)
    assert line_of(holder) == "held\n"
    waiting = Visitor(Lane(name))
    assert not waiting.entered.wait(0.2)
    holder.kill()
    assert waiting.entered.wait(SECONDS)
    waiting.released.set()


def test_a_busy_process_keeps_no_other_waiting_for_more_than_a_few_stays(
    name: str, start: Start
) -> None:
    busy = start(BUSY)
    before = int(line_of(busy))
    for _ in range(5):
        with Lane(name).entered():
            pass
    with Lane(name).entered():
        assert busy.stdout is not None
        busy.kill()
        stays = [int(line) for line in busy.stdout.read().splitlines()]
    assert max([before, *stays]) - before <= 5 * 4


def test_the_holder_is_named(name: str, start: Start) -> None:
    holder = start(HOLD)
    assert line_of(holder) == "held\n"
    assert f"held by process {holder.pid}: {sys.executable}" in holder_of(Lane(name).file)
