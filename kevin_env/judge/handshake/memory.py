"""Memory that judge and candidate share.

A region that the judge lends is a separate allocation, so nothing else is mapped with it. On a
CPU the judge reads outputs directly from the candidate's process: they are not copied while the
clock runs, and no code of the candidate decides what the judge sees.
"""

import fcntl
import mmap
import os
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.region import POISON, Region, Spec, is_dense, spec_of
from kevin_env.judge.workers.errors import Broken

T = TypeVar("T")

ALIGNMENT = 512
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class SharedRegion(Region):
    """A region made by the judge. `order` and `fds` are what a candidate needs to map it."""

    def __init__(self, size: int, device: torch.device) -> None:
        size = aligned(max(size, 1), cuda.BLOCK if device.type == "cuda" else ALIGNMENT)
        self._fd: int | None = None
        self._pointer: int | None = None
        self.order: dict[str, Any] = {"size": size}
        if device.type == "cuda":
            self._pointer = _allocated(size)
            self.order["handle"] = cuda.export_handle(self._pointer)
            super().__init__(cuda.as_tensor(self._pointer, size, device))
        else:
            self._fd = os.memfd_create("kevin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self._fd, size)
            # shrunk by a candidate, it would kill the process that reads it
            fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, SEALS)
            super().__init__(torch.frombuffer(mmap.mmap(self._fd, size), dtype=torch.uint8))

    @property
    def fds(self) -> tuple[int, ...]:
        """The descriptors that go with `order`."""
        return () if self._fd is None else (self._fd,)

    def close(self) -> None:
        """Gives the memory back; no tensor in it may be used afterwards."""
        if self._pointer is not None:
            torch.cuda.synchronize(self.bytes.device)
            self.bytes = torch.empty(0)
            cuda.free(self._pointer)
            self._pointer = None
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


SLACK = 1 << 20, 256 << 20
"""Bounds in bytes of the slack of a region, a quarter of the requested size: inputs vary."""


def with_slack(size: int) -> int:
    """Bytes of a region for inputs or outputs that took `size` bytes once."""
    return size + min(max(size // 4, SLACK[0]), SLACK[1])


def with_regions(sizes: list[int], device: torch.device, make: Callable[..., T]) -> T:
    """What `make` returns for regions of at least these sizes.

    They are freed if it fails, or if one of them cannot be allocated.
    """
    with ExitStack() as undone:
        regions = [
            undone.enter_context(closing(SharedRegion(with_slack(size), device))) for size in sizes
        ]
        made = make(*regions)
        undone.pop_all()
    return made


def _allocated(size: int) -> int:
    """Device memory; torch's cache is emptied if that is needed."""
    with suppress(torch.OutOfMemoryError):
        return cuda.allocate(size)
    torch.cuda.empty_cache()
    return cuda.allocate(size)


class Image:
    """A private copy of a region's future content: tensors in a row, with poison between them.

    Args:
        tensors: On any device.
        device: Of the copy.

    Attributes:
        bytes: All of it, a multiple of eight.
        specs: Where each tensor lies, for the candidate.
        tensors: Views into the image, from which the judge computes its expectations.
    """

    def __init__(self, tensors: list[torch.Tensor], device: torch.device) -> None:
        dense = [t if is_dense(t) else t.contiguous() for t in tensors]
        self.bytes = torch.empty(image_size(dense), dtype=torch.uint8, device=device)
        self.specs: list[Spec] = []
        self.tensors: list[torch.Tensor] = []
        local, end = Region(self.bytes), 0
        for tensor in dense:
            spec, filled = spec_of(tensor, end), end + tensor.numel() * tensor.element_size()
            self.specs.append(spec)
            self.tensors.append(local.tensor(spec).copy_(tensor))
            end = aligned(filled) + ALIGNMENT
            self.bytes[filled:end].fill_(POISON)

    @property
    def end(self) -> int:
        """The first byte after it in the region."""
        return self.bytes.numel()

    def write_to(self, region: Region) -> None:
        """Copies the bytes to the beginning of the region; on a GPU this is only queued.

        This is a kernel, not a device-to-device copy: a kernel needs the device for itself.
        """
        torch.add(self.bytes.view(torch.int64), 0, out=self._in(region))

    def unchanged_in(self, region: Region) -> bool:
        """Whether the region still holds exactly this."""
        return torch.equal(
            self._in(region), self.bytes.view(torch.int64)
        )  # an eighth of the elements

    def changed_in(self, region: Region) -> list[int]:
        """The numbers of the tensors whose bytes in the region are other ones."""
        ends = [spec["offset"] + t.nbytes for spec, t in zip(self.specs, self.tensors, strict=True)]
        places = [slice(spec["offset"], end) for spec, end in zip(self.specs, ends, strict=True)]
        return [
            number
            for number, place in enumerate(places)
            if not torch.equal(region.bytes[place], self.bytes[place])
        ]

    def differs_from(self, region: Region) -> torch.Tensor:
        """Whether the region differs, as a tensor; on a GPU this is only queued."""
        return (self._in(region) != self.bytes.view(torch.int64)).any()

    def _in(self, region: Region) -> torch.Tensor:
        return region.bytes[: self.end].view(torch.int64)


def aligned(size: int, unit: int = ALIGNMENT) -> int:
    """`size` rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def image_size(tensors: list[torch.Tensor]) -> int:
    """Bytes of an image of these tensors."""
    return sum(aligned(t.numel() * t.element_size()) + ALIGNMENT for t in tensors)


class ProcessMemory:
    """The memory of one process as of now; a program that it executes later has other memory.

    Args:
        pid: A descendant of this process.

    Raises:
        OSError: if it may not be read.
    """

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, address: int, size: int) -> torch.Tensor:
        """Copies `size` bytes from an address.

        Raises:
            Broken: if the process has no such memory.
        """
        data = torch.empty(size, dtype=torch.uint8)
        room, done = memoryview(data.numpy().data), 0
        with suppress(OSError, OverflowError):
            while done < size and (read := os.preadv(self._fd, [room[done:]], address + done)):
                done += read
        if done < size:
            raise Broken("an output does not lie in the memory of its process")
        return data

    def close(self) -> None:
        """Closes it. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def memory_below(supervisor: int) -> ProcessMemory | None:
    """The memory of a supervisor's candidate; None where it may not be read.

    Nothing of a submission has run yet.
    """
    with suppress(OSError, ValueError):
        (candidate,) = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        return ProcessMemory(int(candidate))
    return None
