"""The watch over device memory, with a table in the driver's place: what it does to a candidate is
real.
"""

import time

import pytest
from loaded import Submit

from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.memory_watch import SHARE, DeviceMemory, limit_of
from kevin_env.judge.workers.usage import descendants

GROUP = "import os, time\nif os.fork() == 0: time.sleep(99)\n"


def test_who_takes_too_much_is_ended_and_others_are_not(submit: Submit) -> None:
    hog, other = submit(GROUP), submit(GROUP)
    table = dict.fromkeys(
        descendants(hog.worker.pid), 300 << 20
    )  # two processes, each below the limit
    table |= dict.fromkeys(descendants(other.worker.pid), 200 << 20)
    assert len(table) == 4
    watch = DeviceMemory(lambda: table, 500 << 20, lambda: False)
    for ran in (hog, other):
        watch.watch(ran.worker)
    with pytest.raises(Ended) as ended:
        while True:
            hog.worker.ask("prepare", 10, device="cpu", threads=1)
    assert ended.value.limit == "more than 500 MiB of device memory"
    other.worker.ask("prepare", 10, device="cpu", threads=1)
    watch.close()


def test_nobody_is_ended_for_a_context_on_a_device_that_others_have_filled() -> None:
    assert limit_of(0) == limit_of(CONTEXT) >= 2 * CONTEXT
    assert limit_of(100 * CONTEXT) == int(100 * CONTEXT * SHARE)


def test_what_a_candidate_holds_is_that_of_all_its_processes(submit: Submit) -> None:
    hog, other = submit(GROUP), submit(GROUP)
    table = dict.fromkeys(descendants(hog.worker.pid), 3) | dict.fromkeys(
        descendants(other.worker.pid), 5
    )
    watch = DeviceMemory(lambda: table, 1, lambda: False)
    assert (watch.held(hog.worker), watch.held(other.worker)) == (6, 10)
    watch.close()


def test_nothing_is_asked_while_something_is_timed_nor_of_who_is_forgotten(submit: Submit) -> None:
    ran, asked, busy = submit(""), [], [True]

    def usage() -> dict[int, int]:
        asked.append(1)
        return dict.fromkeys(descendants(ran.worker.pid), 1 << 40)

    watch = DeviceMemory(usage, 1, lambda: bool(busy))
    watch.watch(ran.worker)
    time.sleep(0.8)
    assert not asked
    watch.forget(ran.worker)
    busy.clear()
    time.sleep(0.6)
    assert not asked
    ran.worker.ask("prepare", 10, device="cpu", threads=1)
    watch.close()
