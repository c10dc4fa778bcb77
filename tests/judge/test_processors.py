"""Which processor is the judge's alone, and who runs there."""

import itertools
import os
import signal
import subprocess
import time

import pytest
from loaded import MEMORY

from kevin_env.judge import processors
from kevin_env.judge.launcher import ForkServer
from kevin_env.judge.processors import judges_own, leave_to_judge, on_its_own, timed_on, together
from kevin_env.judge.usage import descendants
from kevin_env.judge.worker import Worker


def test_each_gpu_has_another_and_a_small_machine_or_a_cpu_none() -> None:
    allowed = range(4, 20)
    assert [judges_own(place, allowed) for place in (0, 1, 7, 8)] == [19, 18, 12, 19]
    assert judges_own(0, range(7)) is None and judges_own(None, allowed) is None


@pytest.mark.parametrize("processors", [8, 16, 20, 128])
def test_nobody_is_timed_on_a_judges_processor(processors: int) -> None:
    allowed = range(100, 100 + processors)
    own, timed = ({where(place, allowed) for place in range(16)} for where in (judges_own, timed_on))
    assert not own & timed and own | timed < {None, *allowed}
    assert len(timed) == min(16, processors // 4)
    assert timed_on(None, allowed) is None and timed_on(0, range(7)) is None


def test_candidates_that_take_turns_have_one_processor_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr(processors, "timed_on", lambda place, allowed: None if place is None else max(allowed))
    keepers = [subprocess.Popen(["sh", "-c", "sleep 60; exit"]) for _ in range(2)]
    try:
        while not all(each := [list(descendants(keeper.pid)) for keeper in keepers]):
            time.sleep(0.01)
        pids = [keepers[1].pid, *each[1]]
        with together(0, [keepers[0].pid, keepers[1].pid, 1 << 30]):
            assert [os.sched_getaffinity(pid) for pid in (*each[0], *each[1])] == [{max(allowed)}] * 2
            assert [os.sched_getaffinity(keeper.pid) for keeper in keepers] == [allowed] * 2  # what stops them
            keepers[0].kill()
            keepers[0].wait()
        assert all(os.sched_getaffinity(pid) == allowed for pid in (0, *pids))
        with together(None, [keepers[1].pid]):
            assert all(os.sched_getaffinity(pid) == allowed for pid in pids)
    finally:
        for pid in itertools.chain(*each):
            os.kill(pid, signal.SIGKILL)
        for keeper in keepers:
            keeper.wait()


def test_the_judge_runs_there_while_it_times_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one processor")
    monkeypatch.setattr(processors, "LEAST", 2)
    monkeypatch.setattr(processors, "timed_on", lambda place, allowed: max(allowed))  # two may not be enough for more
    with on_its_own(0):
        assert os.sched_getaffinity(0) == {max(allowed)}
    assert os.sched_getaffinity(0) == allowed
    pid = os.fork()
    if pid == 0:
        leave_to_judge(0)
        os._exit(int(os.sched_getaffinity(0) != allowed - {max(allowed)}))
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("place", [None, 3])
def test_a_candidate_leaves_it_alone(server: ForkServer, place: int | None) -> None:
    worker = Worker(server, "cpu" if place is None else "cuda:0", MEMORY, place=place)
    try:
        allowed = os.sched_getaffinity(0)
        assert os.sched_getaffinity(worker.pid) == allowed - {judges_own(place, allowed), timed_on(place, allowed)}
    finally:
        worker.close()
