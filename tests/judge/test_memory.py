"""Memory that the judge lends, and a candidate's memory that it reads."""

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kevin_env.candidate.region import POISON, is_compact
from kevin_env.judge.handshake.memory import (
    ALIGNMENT,
    Image,
    ProcessMemory,
    SharedRegion,
    image_size,
    with_regions,
)
from kevin_env.judge.workers import worker as worker_module
from kevin_env.judge.workers.errors import Broken

CPU = torch.device("cpu")
TENSORS = [
    torch.randn(3, 5), torch.tensor(2.5), torch.randn(4, 0), torch.randn(5, 3).t(),
    torch.randn(6, 6)[::2], torch.randn(4, 1).expand(4, 6), torch.arange(7),
    torch.tensor([True, False, True]), torch.randn(130).bfloat16(),
    torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
]  # fmt: skip


def test_an_image_arrives_in_the_region_as_it_is() -> None:
    image, region = Image(TENSORS, CPU), SharedRegion(image_size(TENSORS), CPU)
    image.write_to(region)
    for tensor, spec, own in zip(TENSORS, image.specs, image.tensors, strict=True):
        assert torch.equal(region.tensor(spec), tensor) and torch.equal(own, tensor)
    assert image.end == image_size(TENSORS) == region.size
    assert image.unchanged_in(region)
    region.close()


def test_a_dense_tensor_keeps_its_strides_and_others_are_packed() -> None:
    strides = [t.stride() for t in Image(TENSORS, CPU).tensors]
    assert (strides[3], strides[9]) == (TENSORS[3].stride(), TENSORS[9].stride())
    assert (strides[4], strides[5]) == ((6, 1), (6, 1))


def test_between_tensors_lies_poison_and_a_change_of_one_byte_there_is_noticed() -> None:
    image = Image(TENSORS, CPU)
    region = SharedRegion(image.end, CPU)
    covered = torch.zeros(image.end, dtype=torch.bool)
    for spec, tensor in zip(image.specs, image.tensors, strict=True):
        covered[spec["offset"] : spec["offset"] + tensor.nbytes] = True
    gaps = (~covered).nonzero().flatten().tolist()
    assert len(gaps) >= len(TENSORS) * ALIGNMENT
    for byte in (gaps[0], gaps[-1], *gaps[:: len(gaps) // 20], 0):
        image.write_to(region)
        assert byte == 0 or int(region.bytes[byte]) == POISON
        region.bytes[byte] ^= 1
        assert not image.unchanged_in(region) and bool(image.differs_from(region))
    image.write_to(region)
    assert not image.differs_from(region)
    region.close()


def test_a_closed_region_leaves_no_descriptor() -> None:
    gc.collect()  # what tests before it left in cycles
    before = regions_open()
    region = SharedRegion(1 << 20, CPU)
    assert regions_open() > before
    region.close()
    region.close()
    del region
    gc.collect()
    assert regions_open() == before


@pytest.mark.parametrize("size", [0, 4096, 1 << 20])
def test_a_region_cannot_be_resized_through_its_descriptor(size: int) -> None:
    """A candidate that shrinks it would kill the judge when it reads the region."""
    region = SharedRegion(8192, CPU)
    with pytest.raises(PermissionError):
        os.ftruncate(region.fds[0], size)
    assert int(region.bytes.sum()) == 0
    region.close()


def test_regions_are_freed_if_nothing_can_be_made_of_them() -> None:
    before = regions_open()

    def fails(inbox: SharedRegion, outbox: SharedRegion) -> None:
        assert regions_open() > before
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        with_regions([4096, 4096], CPU, fails)
    assert regions_open() == before


def regions_open() -> int:
    """Descriptors of regions in this process, where other tests' judges may be ending."""
    links = (each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum(str(link).startswith("/memfd:kevin") for link in links)


PROGRAM = """
import ctypes, os, sys
kept = ctypes.create_string_buffer(bytes(range(256)) * 64)
print(ctypes.addressof(kept), flush=True)
sys.stdin.readline()
os.execv(sys.executable, [sys.executable, "-c", "print('another', flush=True); input()"])
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_memory_of_another_process_is_read(process: subprocess.Popen[str]) -> None:
    address, memory = int(line(process)), ProcessMemory(process.pid)
    assert memory.read(address + 1, 5).tolist() == [1, 2, 3, 4, 5]
    assert memory.read(address, 256 * 64).tolist() == list(range(256)) * 64
    assert memory.read(address, 0).tolist() == []
    memory.close()
    memory.close()
    with pytest.raises(Broken):
        memory.read(address, 5)


@pytest.mark.parametrize("address", [0, 4096, 1 << 47, (1 << 62) - 1])
def test_what_is_no_memory_cannot_be_read(process: subprocess.Popen[str], address: int) -> None:
    line(process)
    memory = ProcessMemory(process.pid)
    with pytest.raises(Broken, match="does not lie in the memory of its process"):
        memory.read(address, 4096)
    memory.close()


def test_a_program_that_a_process_becomes_has_other_memory(process: subprocess.Popen[str]) -> None:
    address, memory = int(line(process)), ProcessMemory(process.pid)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert line(process) == "another"
    with pytest.raises(Broken):
        memory.read(address, 5)
    memory.close()


def test_half_of_what_is_asked_for_is_not_enough() -> None:
    size = os.sysconf("SC_PAGE_SIZE")
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    start = libc.mmap(None, 2 * size, 3, 0x22, -1, 0)
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.munmap(start + size, size)
    memory = ProcessMemory(os.getpid())
    assert len(memory.read(start, size)) == size
    with pytest.raises(Broken):
        memory.read(start, 2 * size)
    memory.close()


@pytest.mark.parametrize(
    ("tensor", "compact"),
    [
        (torch.zeros(6, 4), True),
        (torch.zeros(6, 4).T, True),
        (torch.zeros(1).expand(6, 4), True),
        (torch.zeros(6, 8)[:, :4], True),
        (torch.zeros(6, 9)[:, :3], False),
        (torch.zeros(50)[::10], False),
        (torch.zeros(41, dtype=torch.uint8)[1:].view(torch.uint8)[: 5 * 8].view(8, 5), True),
        (torch.frombuffer(bytearray(41), dtype=torch.int64, offset=1, count=5), False),
    ],
)
def test_what_is_read_at_once_is_aligned_and_not_much_larger_than_its_elements(
    tensor: torch.Tensor, compact: bool
):
    assert is_compact(tensor) is compact


OUTPUTS = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.complex(x, x + 1)
        wide = torch.zeros(len(x), 99).index_fill_(1, torch.tensor([0]), 7.0)
        return {"conj": y.conj(), "part": wide[:, :1], "turned": (x + 2).T, "none": x[:0], "same": x}
"""


@pytest.mark.parametrize("readable", [True, False])
def test_outputs_are_seen_where_they_are_or_as_they_are_copied(
    a_judge: Any, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    """The reference is the submission itself; all that it gives has to be found, whichever way."""
    from kevin_env.judge import Options, Submission
    from kevin_env.judge.handshake.handshake import Answer
    from kevin_env.judge.trial import Trial
    from kevin_env.problem import Problem

    if not readable:
        monkeypatch.setattr(worker_module, "memory_below", lambda supervisor: None)
    answers: list[Answer] = []
    call = Trial.call

    def noted(*given: Any, **more: Any) -> Answer:
        answers.append(call(*given, **more))
        return answers[-1]

    monkeypatch.setattr(Trial, "call", noted)
    source = OUTPUTS.replace("ModelNew", "Model") + (
        "def get_inputs():\n    return [torch.randn(500, 300)]\ndef get_init_inputs():\n    return []\n"
    )
    problem = Problem(id="many", name="many", source=source)
    outcome = (
        a_judge()
        .judge(problem, Submission(code=OUTPUTS), Options(device="cpu"), lambda _: None)
        .outcome
    )
    assert outcome.category == "correct", outcome
    own = "memory" if readable else "outbox"
    places = [claim.place for claim in answers[0].claim.tensors]
    assert sorted(places, key=str) == sorted([own, "outbox", own, "outbox", "inbox"])
