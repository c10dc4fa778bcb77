"""What is waited for is said once, in one line."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from plain_judge import PROGRAM, SILENT
from processes import descendants, named

from kevin_env.judge import JudgeError, Options, Submission, waiting
from kevin_env.judge.lane import Lane
from kevin_env.pools.local import LocalPool
from kevin_env.pools.remote import Remote
from kevin_env.problem import Problem

HOLD = """
import sys
from kevin_env.judge.lane import Lane
with Lane(sys.argv[1]).entered():
    print("held", flush=True)
    sys.stdin.read()
"""
Told = Callable[[str], list[str]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Told:
    """Waits until a line with this text is logged, and returns all lines with it."""
    monkeypatch.setattr(waiting, "TELL_SECONDS", 0.2)

    def lines(text: str) -> list[str]:
        deadline = time.monotonic() + 30
        while not (found := [each for each in caplog.messages if text in each]):
            assert time.monotonic() < deadline, caplog.messages
            time.sleep(0.02)
        return found

    caplog.set_level(logging.WARNING)
    return lines


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def holder(name: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the lane and is stopped."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGSTOP)
        yield process
        process.kill()


def test_who_holds_the_device_is_said_once(
    told: Told, name: str, holder: "subprocess.Popen[str]"
) -> None:
    lane = Lane(name)

    def wait() -> None:
        with lane.entered():
            pass

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert told(f"{name}.lane")
    holder.kill()
    for thread in threads:
        thread.join(30)
    (line,) = told(f"{name}.lane")
    assert f"held by process {holder.pid} (stopped): {sys.executable} -c" in line


def test_a_judge_that_does_not_start_soon_is_named(told: Told) -> None:
    with LocalPool(start=partial(Remote, program=SILENT)) as pool:
        starting = threading.Thread(target=pytest.raises, args=(JudgeError, pool.device, "cpu"))
        starting.start()
        assert told("still waiting for the judge of cpu to start")
        pool.close()
        starting.join(30)


def test_a_judge_that_is_stopped_is_named(told: Told) -> None:
    problem = Problem(id="any", source="", name="any", statement="")
    with LocalPool(start=partial(Remote, beat=1.0, program=PROGRAM)) as pool:
        pool.submit(problem, Submission(code=""), Options(device="cpu")).result(60)
        (judge,) = named(descendants(os.getpid()), *PROGRAM)
        os.kill(judge, signal.SIGSTOP)
        assert told("still waiting for an answer of the judge of cpu")
        os.kill(judge, signal.SIGCONT)
