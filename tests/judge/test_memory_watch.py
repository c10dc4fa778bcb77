"""The watch over device memory, with a table in the driver's place: what it does to a candidate is
real.
"""

import os
import time

import pytest
from loaded import Submit

from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.memory_watch import SHARE, WATCH_SECONDS, DeviceMemory, limit_of
from kevin_env.judge.workers.usage import descendants

GROUP = "import os, time\nif os.fork() == 0: time.sleep(99)\n"


def test_who_takes_too_much_is_ended_and_others_are_not(submit: Submit) -> None:
    hog, other, forgotten = submit(GROUP), submit(GROUP), submit(GROUP)
    # two processes, each below the limit
    table = dict.fromkeys(descendants(hog.worker.pid), 40 * CONTEXT)
    table |= dict.fromkeys(descendants(other.worker.pid), 25 * CONTEXT)
    table |= dict.fromkeys(descendants(forgotten.worker.pid), 40 * CONTEXT)
    assert len(table) == 6
    watch = DeviceMemory(lambda: table, lambda: -210 * CONTEXT, 100 * CONTEXT)
    for ran in (forgotten, hog, other):
        watch.watch(ran.worker)
    watch.forget(forgotten.worker)
    with pytest.raises(Ended) as ended:
        while True:
            hog.worker.ask("prepare", 10, device="cpu", threads=1)
    assert ended.value.limit == f"more than {int(100 * CONTEXT * SHARE) >> 20} MiB of device memory"
    for ran in (other, forgotten):
        ran.worker.ask("prepare", 10, device="cpu", threads=1)
    watch.close()


def test_nobody_is_ended_for_a_context_on_a_device_that_others_have_filled() -> None:
    assert limit_of(0) == limit_of(CONTEXT) >= 2 * CONTEXT
    assert limit_of(100 * CONTEXT) == int(100 * CONTEXT * SHARE)


def test_memory_that_others_held_at_the_start_counts_once_it_is_free(submit: Submit) -> None:
    least = 2 * CONTEXT
    hog, free = submit(GROUP), [10 * least]
    table = dict.fromkeys(descendants(hog.worker.pid), least)  # two processes
    table |= {os.getpid(): least, os.getppid(): 99 * least}
    watch = DeviceMemory(lambda: table, lambda: free[0], 0)
    assert watch.available() == 13 * least
    watch.watch(hog.worker)
    time.sleep(3 * WATCH_SECONDS)
    hog.worker.ask("prepare", 10, device="cpu", threads=1)
    free[0] = 0
    assert watch.available() == 3 * least
    with pytest.raises(Ended) as ended:
        while True:
            hog.worker.ask("prepare", 10, device="cpu", threads=1)
    assert ended.value.limit == f"more than {int(3 * least * SHARE) >> 20} MiB of device memory"
    watch.close()


def test_what_a_candidate_holds_is_that_of_all_its_processes(submit: Submit) -> None:
    hog, other = submit(GROUP), submit(GROUP)
    table = dict.fromkeys(descendants(hog.worker.pid), 3) | dict.fromkeys(
        descendants(other.worker.pid), 5
    )
    watch = DeviceMemory(lambda: table, lambda: 0, 1)
    assert (watch.held(hog.worker), watch.held(other.worker)) == (6, 10)
    watch.close()
