"""How many submissions at once, by the size of the machine or container."""

import os
from pathlib import Path

import pytest

from kevin_env.judge.capacity import (
    CONTEXT,
    GIB,
    HOST_SHARE,
    READY_SHARE,
    SUBMISSION,
    Capacity,
    Machine,
    capacity_of,
    cores,
    host_memory,
)

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
    assert found.slots >= 1 and found.spares >= 1 and found.ready >= 1
    assert found.slots <= max(1, machine.cores)
    assert found.slots == 1 or found.slots * SUBMISSION <= HOST_SHARE * machine.memory
    if machine.device_memory is not None and found.ready > 1:
        assert found.ready * CONTEXT <= READY_SHARE * machine.device_memory


def test_what_is_scarce_decides() -> None:
    assert capacity_of(H200) == Capacity(slots=12, spares=6, ready=4)  # cores
    assert capacity_of(CONSUMER) == Capacity(slots=7, spares=3, ready=3)  # both memories
    assert capacity_of(LAPTOP) == Capacity(slots=2, spares=1, ready=2)  # host memory
    assert capacity_of(Machine(2, 20 * GIB)) == Capacity(slots=1, spares=1, ready=1)
    assert capacity_of(Machine(8, 60 * GIB)).slots == 4


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
