"""Which processor is the judge's alone, and who runs there."""

import os

import pytest
from loaded import MEMORY

from kevin_env.judge import processors
from kevin_env.judge.launcher import ForkServer
from kevin_env.judge.processors import judges_own, leave_to_judge, on_its_own
from kevin_env.judge.worker import Worker


def test_each_gpu_has_another_and_a_small_machine_or_a_cpu_none() -> None:
    allowed = range(4, 20)
    assert [judges_own(device, allowed) for device in ("cuda", "cuda:0", "cuda:1", "cuda:7")] == [19, 19, 18, 12]
    assert judges_own("cuda:8", allowed) == 19
    assert judges_own("cuda:0", range(7)) is None and judges_own("cpu", allowed) is None


def test_the_judge_runs_there_while_it_times_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one processor")
    monkeypatch.setattr(processors, "LEAST", 2)
    with on_its_own("cuda:0"):
        assert os.sched_getaffinity(0) == {max(allowed)}
    assert os.sched_getaffinity(0) == allowed
    pid = os.fork()
    if pid == 0:
        leave_to_judge("cuda:0")
        os._exit(int(max(allowed) in os.sched_getaffinity(0)))
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_candidate_leaves_it_alone(server: ForkServer, device: str) -> None:
    worker = Worker(server, device, MEMORY)
    try:
        allowed = os.sched_getaffinity(0)
        assert os.sched_getaffinity(worker.pid) == allowed - {judges_own(device, allowed)}
    finally:
        worker.close()
