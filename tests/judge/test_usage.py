"""What /proc tells of processes' memory: real processes that hold real memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kevin_env.judge.workers.usage import (
    ancestors,
    charged,
    descendants,
    faults,
    listed_below,
    more_memory_than,
    processor_time,
    threads,
)

MIB = 1 << 20
GROWS = """
import mmap, threading, time
def grow():
    while True:
        mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).write(b"x")
        time.sleep(0.01)
threading.Thread(target=grow, daemon=True).start()
"""
SHARED = """
import mmap, os
shared = mmap.mmap(-1, 200 << 20)
pid = os.fork()
shared[:] = b"x" * len(shared)
"""
OF_A_THREAD = """
import os, sys, threading
def child():
    if os.fork() == 0:
        print(flush=True)
        sys.stdin.read()
        os._exit(0)
threading.Thread(target=child).start()
"""


@contextmanager
def running(code: str) -> Iterator[list[int]]:
    """A process that has run `code`, and those below it; all end when their input does."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(flush=True)\nsys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for _ in range(code.count("fork") + 1):
            process.stdout.readline()
        yield [process.pid, *descendants(process.pid)]


def test_private_memory_counts() -> None:
    with running("kept = b'x' * (200 << 20)") as hog:
        assert more_memory_than(190 * MIB, hog)
        assert not more_memory_than(260 * MIB, hog)


def test_memory_that_is_shared_and_in_no_file_counts_once() -> None:
    with running(SHARED) as processes:
        assert len(processes) == 2
        assert more_memory_than(190 * MIB, processes)
        assert not more_memory_than(260 * MIB, processes)


@pytest.mark.parametrize("lists", [True, False])
def test_descendants_are_those_below_a_process(
    lists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kevin_env.judge.workers.usage._has_lists", lambda: lists)
    with running("import os; os.fork()") as one, running(OF_A_THREAD) as other:
        for below in (descendants, listed_below):
            assert {*one, *other} <= set(below(os.getpid()))
            assert list(below(one[0])) == one[1:] and list(below(other[0])) == other[1:]
            assert not list(below(one[1]))


def test_ancestors_are_those_above_a_process_and_of_none_there_are_none() -> None:
    with running("import os; os.fork()") as (parent, child):
        assert list(ancestors(child))[:2] == [parent, os.getpid()]
    assert not list(ancestors(1))


@pytest.mark.parametrize("name", [b"\xff", b") S 1 1", b"\rRssAnon: -9999"])
def test_no_name_hides_a_process(name: bytes) -> None:
    with running(f"import ctypes\nctypes.CDLL(None).prctl(15, {name!r})") as (pid,):
        assert pid in descendants(os.getpid())
        assert next(ancestors(pid)) == os.getpid()
        assert more_memory_than(0, [pid]) and threads([pid]) == 1


def test_the_time_of_processes_that_have_ended_counts() -> None:
    code = """
import os
os.system("timeout 9 sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'")
"""
    with running(code) as (pid, *below):
        assert not below and processor_time(pid) > 0.2


def test_what_a_supervisor_runs_itself_does_not_count() -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    with running(f"import os\nos.fork()\n{spin}") as (pid, child):
        assert 0.2 < processor_time(pid) < 0.5 and processor_time(child) == 0


@pytest.mark.parametrize(
    ("elapsed", "ran", "charge"), [(0.5, 0.5, 0.5), (0.5, 0.2, 0.2), (0.5, 2.0, 0.5), (5, 0, 0.5)]
)
def test_a_limit_is_used_up_by_what_a_submission_ran(
    elapsed: float, ran: float, charge: float
) -> None:
    assert charged(elapsed, ran) == pytest.approx(charge)


def test_a_process_that_waits_has_no_page_faults() -> None:
    with running("kept = [bytearray(1 << 20)]") as waiting:
        before = (0, 0)
        while (now := faults(waiting)) != before:  # until it reads
            before = now
            time.sleep(0.1)
        assert before[0] == 1 and before[1] > 0
    with running(GROWS) as busy:
        before = faults(busy)
        while faults(busy)[1] < before[1] + 100:
            time.sleep(0.01)
