"""The watch over device memory, with a table in the driver's place: what it does to a candidate is
real.
"""

import pytest
from loaded import Submit

from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.memory_watch import SHARE, DeviceMemory, limit_of
from kevin_env.judge.workers.usage import descendants

GROUP = "import os, time\nif os.fork() == 0: time.sleep(99)\n"


def test_who_takes_too_much_is_ended_and_others_are_not(submit: Submit) -> None:
    hog, other, forgotten = submit(GROUP), submit(GROUP), submit(GROUP)
    # two processes, each below the limit
    table = dict.fromkeys(descendants(hog.worker.pid), 300 << 20)
    table |= dict.fromkeys(descendants(other.worker.pid), 200 << 20)
    table |= dict.fromkeys(descendants(forgotten.worker.pid), 300 << 20)
    assert len(table) == 6
    watch = DeviceMemory(lambda: table, 500 << 20)
    for ran in (forgotten, hog, other):
        watch.watch(ran.worker)
    watch.forget(forgotten.worker)
    with pytest.raises(Ended) as ended:
        while True:
            hog.worker.ask("prepare", 10, device="cpu", threads=1)
    assert ended.value.limit == "more than 500 MiB of device memory"
    for ran in (other, forgotten):
        ran.worker.ask("prepare", 10, device="cpu", threads=1)
    watch.close()


def test_nobody_is_ended_for_a_context_on_a_device_that_others_have_filled() -> None:
    assert limit_of(0) == limit_of(CONTEXT) >= 2 * CONTEXT
    assert limit_of(100 * CONTEXT) == int(100 * CONTEXT * SHARE)


def test_what_a_candidate_holds_is_that_of_all_its_processes(submit: Submit) -> None:
    hog, other = submit(GROUP), submit(GROUP)
    table = dict.fromkeys(descendants(hog.worker.pid), 3) | dict.fromkeys(
        descendants(other.worker.pid), 5
    )
    watch = DeviceMemory(lambda: table, 1)
    assert (watch.held(hog.worker), watch.held(other.worker)) == (6, 10)
    watch.close()
