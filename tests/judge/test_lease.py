"""The lease holds across processes, so these tests hold it in other processes."""

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from leasing import taken

from kevin_env.judge import lease as lease_module
from kevin_env.judge.lease import Gathering, Lease

HOLD = """
import sys, time
from kevin_env.judge.lease import Lease
with getattr(Lease(sys.argv[1]), sys.argv[2])():
    print("held", flush=True)
    sys.stdin.read()
"""
Hold = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def hold(name: str) -> Iterator[Hold]:
    """Starts a process that takes the lease; it holds it until its stdin closes."""
    with ExitStack() as started:

        def start(how: str) -> "subprocess.Popen[str]":
            process = started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", HOLD, name, how],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            started.callback(process.kill)
            return process

        yield start


def held(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None and process.stdout.readline() == "held\n"


def release(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)


def test_many_share_it(name: str, hold: Hold) -> None:
    held(hold("shared"))
    held(hold("shared"))
    assert taken(Lease(name), "shared", 2)
    assert not Lease(name).wanted()


def test_exclusive_keeps_all_others_out(name: str, hold: Hold) -> None:
    holder = hold("exclusive")
    held(holder)
    lease = Lease(name)
    assert lease.wanted()
    assert not taken(lease, "shared", 0.2) and not taken(lease, "exclusive", 0.2)
    release(holder)
    assert taken(lease, "exclusive", 2)


def test_exclusive_waits_for_shared_leases(name: str, hold: Hold) -> None:
    holder = hold("shared")
    held(holder)
    assert not taken(Lease(name), "exclusive", 0.2)
    release(holder)
    assert taken(Lease(name), "exclusive", 2)


def test_a_waiting_exclusive_lease_is_not_starved(name: str, hold: Hold) -> None:
    first = hold("shared")
    held(first)
    waiting = hold("exclusive")
    deadline = time.monotonic() + 20
    while not Lease(name).wanted():  # until it has started and queues
        assert time.monotonic() < deadline
    assert not taken(Lease(name), "shared", 0.2)
    release(first)
    held(waiting)


def test_exclusive_leases_follow_each_other_before_others_share_it(name: str) -> None:
    order: list[str] = []

    def hold_for_a_moment(how: str) -> None:
        with getattr(Lease(name), how)():
            order.append(how)
            time.sleep(0.05)

    kinds = ("exclusive", "shared", "shared", "exclusive", "shared", "exclusive", "shared")
    threads = [threading.Thread(target=hold_for_a_moment, args=(how,)) for how in kinds]
    with Lease(name).exclusive():
        for count, thread in enumerate(threads, 1):
            thread.start()
            while waiting_for(Lease(name)) < count:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == ["exclusive"] * 3 + ["shared"] * 4


def waiting_for(lease: Lease) -> int:
    """How many threads wait for one of its files, as the kernel lists them."""
    numbers = [file.stat().st_ino for file in (lease._gate, lease._next, lease._file)]
    waiting = [
        line.split()[6] for line in Path("/proc/locks").read_text().splitlines() if "->" in line
    ]
    return sum(int(place.rpartition(":")[2]) in numbers for place in waiting)


def test_a_killed_holder_gives_it_back(name: str, hold: Hold) -> None:
    holder = hold("exclusive")
    held(holder)
    holder.send_signal(signal.SIGKILL)
    assert taken(Lease(name), "exclusive", 2)


def test_it_is_idle_when_no_submission_is_under_way(name: str, hold: Hold) -> None:
    lease = Lease(name)
    assert lease.idle() and lease.idle()
    holders = [hold("in_use"), hold("in_use")]
    for holder in holders:
        held(holder)
    assert taken(lease, "exclusive", 2)  # that is no hold on the device
    for holder in holders:
        assert not lease.idle()
        release(holder)
    assert lease.idle()


def test_devices_have_leases_of_their_own(name: str) -> None:
    with Lease(name).exclusive():
        assert taken(Lease(f"{name}-other"), "exclusive", 2)


def test_threads_of_one_process_count_each(name: str) -> None:
    lease = Lease(name)
    with lease.shared():
        assert taken(lease, "shared", 2) and not taken(lease, "exclusive", 0.1)


def test_an_error_inside_gives_it_back(name: str) -> None:
    lease = Lease(name)
    for how in ("shared", "exclusive", "in_use"):
        with pytest.raises(ZeroDivisionError), getattr(lease, how)():
            raise ZeroDivisionError
        assert lease.idle() and taken(lease, "exclusive", 2)


def test_beside_a_long_call_others_share_it_until_the_call_has_ended(name: str) -> None:
    lease, alone = Lease(name), threading.Event()

    def wait_for_it() -> None:
        with lease.exclusive():
            alone.set()

    with lease.shared(), ExitStack() as long:
        threading.Thread(target=wait_for_it, daemon=True).start()
        deadline = time.monotonic() + 20
        while not lease.wanted():
            assert time.monotonic() < deadline
        assert not taken(lease, "shared", 0.2)
        long.enter_context(lease.long_call())  # it took longer than was foreseen
        assert taken(lease, "shared", 2) and not lease.wanted() and not alone.is_set()
        long.close()
        deadline = time.monotonic() + 20
        while not lease.wanted():
            assert time.monotonic() < deadline
    assert alone.wait(5)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for others that do not come fails by the limit of a test."""
    monkeypatch.setattr(lease_module, "GATHERING_SECONDS", 999)


@pytest.mark.usefixtures("patient")
def test_submissions_gather_until_enough_are_ready() -> None:
    gathering = Gathering(most=2)
    for number in range(3):
        gathering.add(number)
    first = threading.Thread(target=gathering.wait, args=(0,))
    first.start()
    first.join(0.1)
    assert first.is_alive()
    gathering.wait(1)
    first.join()


@pytest.mark.usefixtures("patient")
def test_a_submission_waits_for_no_other_that_is_not_coming() -> None:
    gathering = Gathering(most=4)
    gathering.add("first")
    gathering.wait("first")
    gathering.add("other")
    threading.Timer(0.1, gathering.remove, ["other"]).start()
    gathering.wait("first")


def test_a_submission_never_waits_long_for_others() -> None:
    gathering = Gathering(most=4)
    gathering.add("first")
    gathering.add("other")
    start = time.monotonic()
    gathering.wait("first")
    assert time.monotonic() - start >= 0.9 * lease_module.GATHERING_SECONDS
