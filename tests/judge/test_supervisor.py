"""Nothing runs once everything has been stopped, whoever continues whom meanwhile, and whoever
waits for a child.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from loaded import SECONDS, Submit

from kevin_env.judge.handshake.memory import SharedRegion
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.sandbox.seccomp import NUMBERS
from kevin_env.judge.workers import supervisor
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.supervisor import STRIKES
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker

FIRST, SECOND = (1 << 22) + 1, (1 << 22) + 2
"""Numbers that no process has."""
SPAWNING = r"""
#include <thread>
#include <unistd.h>
int main(int, char** arguments) {
    for (char** each = arguments + 1; *each; ++each)
        std::thread([=] { while (true) if (**each == 's') sleep(99); }).detach();
    if (vfork() == 0)
        while (true) pause();
}
"""
"""A program with threads that sleep or run; its first waits in the kernel (D) for a child that
becomes nothing else.
"""
STOPS = """
import os, subprocess, sys, time
from kevin_env.judge.sandbox.system import become_subreaper
from kevin_env.judge.workers.supervisor import kill_all, stop_all, watched
from kevin_env.judge.workers.usage import arrivals
become_subreaper()
subprocess.Popen(sys.argv[1:])
while len(watched(False)) < 2:
    time.sleep(0.01)
print("STOPPED", stop_all(False))
before = arrivals(watched(False))
time.sleep(0.2)
print("STOOD STILL", len(before), arrivals(watched(False)) == before)
kill_all(False)
"""
FREEZES = f"""
import ctypes, gc, os, signal, threading, time
def region():
    while not (found := [r for r in gc.get_objects() if type(r).__name__ == "Runtime" and "counter" in r.regions]):
        time.sleep(0.01)
    return found[0].regions["counter"].bytes
def count(memory, at):
    while True: memory[at] += 1
def begin():
    memory = region()
    if os.fork() == 0:
        waits(memory)
def vfork():
    return ctypes.PyDLL(None).syscall({NUMBERS[os.uname().machine]["clone"]}, 0x4000 | signal.SIGCHLD, 0, 0, 0, 0)
threading.Thread(target=begin, daemon=True).start()
"""
RUNS = """
def waits(memory):
    if vfork() == 0:
        count(memory, 0)
"""
"""A child that runs, and a parent that waits for it."""


class Helpers:
    """Two processes. The second continues the first just before it meets its own signal: so many
    times.
    """

    def __init__(self, times: int) -> None:
        self.left = times
        self.runs = {FIRST: True, SECOND: True}

    def signal(self, number: int, isolated: bool) -> None:
        self.runs[FIRST] = False

    def threads(self, pid: int) -> dict[str, str]:
        if pid == SECOND:
            self.runs[FIRST] = self.runs[FIRST] or self.left > 0
            self.runs[SECOND], self.left = False, self.left - 1
        return {f"/proc/{pid}/task/{pid}": "R" if self.runs[pid] else "T"}


class Restless(Helpers):
    """Two processes that are always seen to run."""

    def threads(self, pid: int) -> dict[str, str]:
        return {f"/proc/{pid}/task/{pid}": "R"}


def watching(monkeypatch: pytest.MonkeyPatch, helpers: Helpers) -> Helpers:
    monkeypatch.setattr(supervisor, "signal_all", helpers.signal)
    monkeypatch.setattr(supervisor, "_threads", helpers.threads)
    monkeypatch.setattr(supervisor, "watched", lambda isolated: [FIRST, SECOND])
    return helpers


@pytest.mark.parametrize("times", [0, 1])
def test_one_that_was_continued_after_it_was_looked_at_is_stopped_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    helpers = watching(monkeypatch, Helpers(times))
    assert supervisor.stop_all(True)
    assert helpers.runs == {FIRST: False, SECOND: False}


def test_what_never_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.1)
    watching(monkeypatch, Restless(0))
    assert not supervisor.stop_all(True)


@pytest.fixture(scope="module")
def spawning(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tmp_path_factory.mktemp("spawning") / "spawning.cpp"
    source.write_text(SPAWNING)
    subprocess.run(["g++", "-pthread", str(source), "-o", str(source.with_suffix(""))], check=True)
    return str(source.with_suffix(""))


@pytest.mark.parametrize(
    "threads", [[], ["sleeps"], ["runs", "runs"]], ids=["alone", "sleeping", "running"]
)
def test_whoever_waits_for_a_child_that_is_stopped_counts_as_stopped(
    spawning: str, threads: list[str]
) -> None:
    code = [sys.executable, "-c", STOPS, spawning, *threads]
    ran = subprocess.run(code, check=True, capture_output=True, text=True)
    assert ran.stdout == f"STOPPED True\nSTOOD STILL {2 + len(threads)} True\n"


def test_whoever_waits_for_a_child_counts_only_if_it_is_about_to_stop_itself(spawning: str) -> None:
    program = subprocess.Popen([spawning], start_new_session=True)
    try:
        while not any(descendants(program.pid)) or list(
            (threads := supervisor._threads(program.pid)).values()
        ) != ["D"]:
            time.sleep(0.01)
        assert not supervisor._stopped(threads)
        program.send_signal(signal.SIGSTOP)  # another of its threads might be the one that meets it
        assert not supervisor._stopped(threads)
        supervisor._stop_each(threads)
        assert supervisor._stopped(threads)
        program.send_signal(signal.SIGCONT)
        assert not supervisor._stopped(threads)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@pytest.fixture(params=["root", "landlock"])
def level(request: pytest.FixtureRequest) -> LevelName:
    """With processes of its own, and without."""
    return request.param


@pytest.fixture
def counting(submit: Submit) -> Iterator[Callable[[str], tuple[Worker, torch.Tensor]]]:
    """A candidate that runs the code, and the memory in which that counts."""
    region = SharedRegion(4096, torch.device("cpu"))
    region.bytes.zero_()

    def start(code: str) -> tuple[Worker, torch.Tensor]:
        worker = submit(FREEZES + code).worker
        worker.share("counter", region, SECONDS)
        _wait_for_change(region.bytes)
        return worker, region.bytes

    yield start
    region.close()


def _wait_for_change(memory: torch.Tensor) -> None:
    before, deadline = memory[0].item(), time.monotonic() + SECONDS
    while (now := memory[0].item()) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert now != before


def test_a_child_and_who_waits_for_it_stand_still_and_go_on(counting) -> None:
    worker, memory = counting(RUNS)
    for _ in range(2 * STRIKES):
        worker.freeze(True)
        frozen = memory[0].item()
        time.sleep(0.05)
        assert memory[0].item() == frozen
        worker.freeze(False)
        assert worker.stood_still
        _wait_for_change(memory)


def test_a_child_that_runs_meanwhile_is_noticed(counting) -> None:
    """Whatever wakes it: here it is the judge."""
    worker, memory = counting(RUNS)
    with pytest.raises(Ended) as found:
        for _ in range(4 * STRIKES):
            worker.freeze(True)
            for pid in descendants(worker.pid):
                os.kill(pid, signal.SIGCONT)
            _wait_for_change(memory)
            worker.freeze(False)
            assert not worker.stood_still
    assert found.value.limit == "time in which it was to stand still"


def test_a_program_that_starts_others_all_the_time_is_stopped_every_time(submit: Submit) -> None:
    loop = "if os.fork() == 0:\n    while True: subprocess.run(['/bin/true'])"
    worker = submit(f"import os, subprocess\n{loop}").worker
    for _ in range(50):
        time.sleep(0.02)
        worker.freeze(True)
        worker.freeze(False)
