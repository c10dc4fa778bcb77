"""How many submissions at once, by the size of the machine or container."""

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kevin_env.judge.bench import Bench
from kevin_env.judge.candidates import WarmPool
from kevin_env.judge.capacity import (
    CONTEXT,
    COPIES,
    DEVICE_SHARE,
    GIB,
    HOST_SHARE,
    SUBMISSION,
    Capacity,
    Machine,
    capacity_of,
    cores,
    host_memory,
)
from kevin_env.judge.workers.worker import Worker

H200 = Machine(cores=16, memory=120 * GIB, device_memory=139 * GIB)
CONSUMER = Machine(cores=16, memory=28 * GIB, device_memory=24 * GIB)
LAPTOP = Machine(cores=8, memory=11 * GIB)
MACHINES = [
    H200, CONSUMER, LAPTOP, Machine(2, 20 * GIB), Machine(1, GIB), Machine(64, GIB, 8 * GIB),
    Machine(1, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_a_judge_always_works_and_stays_within_its_shares(machine: Machine) -> None:
    found = capacity_of(machine)
    assert found.slots >= found.on_device >= 1 and found.spares >= 1
    assert found.slots <= max(1, machine.cores)
    assert found.slots == 1 or found.slots * SUBMISSION <= HOST_SHARE * machine.memory
    if machine.device_memory is not None and found.slots > 1:
        assert (
            found.baselines + found.slots + found.spares
        ) * CONTEXT <= DEVICE_SHARE * machine.device_memory


def test_what_is_scarce_decides() -> None:
    place = 0.6 * 139 * GIB / 8
    assert capacity_of(H200) == Capacity(
        12, on_device=8, spares=6, sessions=4, baselines=10, place=place
    )  # cores
    place = 0.6 * 24 * GIB / 6
    assert capacity_of(CONSUMER) == Capacity(
        6, on_device=6, spares=3, sessions=1, baselines=3, place=place
    )  # memories
    assert capacity_of(LAPTOP) == Capacity(slots=2, on_device=2, spares=1)  # host memory
    assert capacity_of(Machine(2, 20 * GIB)) == Capacity(slots=1, on_device=1, spares=1)
    assert capacity_of(Machine(8, 60 * GIB)).slots == 4


def test_a_submission_takes_places_by_the_size_of_its_calls() -> None:
    found = capacity_of(H200)
    needed = [COPIES * call for call in (0, GIB // 2, GIB, 2 * GIB, 8 * GIB, 100 * GIB)]
    assert list(map(found.places, needed)) == [1, 1, 1, 2, 7, 8]
    assert capacity_of(LAPTOP).places(100 * GIB) == 1


def test_a_container_has_what_it_is_given(tmp_path: Path) -> None:
    assert cores(tmp_path) == len(os.sched_getaffinity(0))  # no group at all
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cores(tmp_path) == len(os.sched_getaffinity(0))
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert cores(tmp_path) == 1
    free = host_memory(tmp_path)
    assert free > 0
    files = {
        "memory.max": "1000\n",
        "memory.current": "700\n",
        "memory.stat": "anon 500\ninactive_file 200\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert host_memory(tmp_path) == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert host_memory(tmp_path) == pytest.approx(free, rel=0.3)


def _wait(bench: Bench) -> None:
    """Until there are as many warm candidates as there are to be."""
    end = time.monotonic() + 30
    while len(bench.candidates._spares) < bench.capacity.spares and time.monotonic() < end:
        time.sleep(0.05)


def _no_files_left(*given: Bench) -> Worker:
    raise OSError(errno.EMFILE, "too many open files")


def test_a_busy_pool_keeps_spares_without_contexts(
    a_bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = WarmPool._forked

    def bare(pool: WarmPool, tools: bool = False) -> Worker:
        worker = fork(pool, tools)
        worker.has_context = False  # as on a GPU
        return worker

    monkeypatch.setattr(WarmPool, "_forked", bare)
    monkeypatch.setattr(
        Worker, "create_context", lambda worker: setattr(worker, "has_context", True)
    )
    with contextlib.closing(a_bench()) as bench:
        pool = bench.candidates

        def contexts() -> set[bool]:
            _wait(bench)
            return {spare.has_context for spare in pool._spares}

        assert contexts() == {True}
        taken = [pool.take(context=False) for _ in range(bench.capacity.on_device)]
        pool.end_spares()
        pool.retire(pool.take(context=False))
        assert contexts() == {False}
        for worker in taken:
            pool.retire(worker)
        assert contexts() == {True}
        last = pool.take()
        assert last.has_context
        pool.retire(last)


def test_idle_processes_are_ended_only_for_memory_that_a_gpu_lacks(
    a_bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[str]()
    with contextlib.closing(a_bench()) as bench:
        monkeypatch.setattr(bench.candidates, "end_spares", lambda: ended.append("spares"))
        monkeypatch.setattr(bench.baselines, "end_free", lambda: ended.append("baselines"))
        bench.clear()
        assert not ended, "on a CPU"
        with monkeypatch.context() as on_gpu:
            on_gpu.setattr(bench, "device", torch.device("cuda"))
            on_gpu.setattr("kevin_env.judge.bench.free_memory", lambda device: GIB)
            bench.clear(GIB)
            assert not ended
            bench.clear(GIB + 1)
            bench.clear()
        assert ended == ["spares", "baselines"] * 2


def test_a_spare_that_could_not_be_started_is_started_again(
    a_bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(a_bench()) as bench:
        _wait(bench)
        with monkeypatch.context() as patch:
            patch.setattr(WarmPool, "_new_worker", _no_files_left)
            bench.candidates.retire(bench.candidates.take())
            end = time.monotonic() + 20
            while bench.candidates._starting and time.monotonic() < end:
                time.sleep(0.01)
        left = bench.capacity.spares - 1
        assert (len(bench.candidates._spares), bench.candidates._starting) == (left, 0)
        bench.candidates.retire(bench.candidates.take())
        _wait(bench)
        assert len(bench.candidates._spares) == bench.capacity.spares


def test_a_candidate_that_cannot_be_prepared_is_ended(
    a_bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(a_bench()) as bench:
        _wait(bench)
        made: list[Worker] = []
        forked = WarmPool._forked
        monkeypatch.setattr(
            WarmPool, "_forked", lambda bench: made.append(forked(bench)) or made[-1]
        )
        monkeypatch.setattr(Worker, "prepare", lambda worker, threads: _no_files_left())
        with pytest.raises(OSError, match="too many"):
            bench.candidates._new_worker()
        assert not made[0].folder.exists()


def test_a_partner_is_replaced_when_a_submission_has_ended(a_bench: Callable[[], Bench]) -> None:
    with contextlib.closing(a_bench()) as bench:
        _wait(bench)
        for _ in range(bench.capacity.spares + 1):
            bench.candidates.take_trusted().close()
        assert not bench.candidates._starting
        bench.candidates.retire(bench.candidates.take())
        _wait(bench)
        assert len(bench.candidates._spares) == bench.capacity.spares


def test_on_a_gpu_a_candidate_is_ended_while_another_is_timed(
    a_bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(a_bench()) as bench:
        worker = bench.candidates.take()
        monkeypatch.setattr(bench.candidates, "_device", torch.device("cuda"))
        with bench.lease.exclusive():
            bench.candidates.retire(worker)
            assert not worker.folder.exists()
