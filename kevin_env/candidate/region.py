"""Memory shared by judge and candidate, tensors in it, and a pattern for unwritten memory.

A region is one allocation: a sealed memfd on a CPU, a separate CUDA allocation on a GPU. Offsets
and sizes in bytes.
"""

import ctypes
import mmap
import os
from typing import Any

import torch

from kevin_env.candidate import cuda

Spec = dict[str, Any]
"""A tensor in a region, as JSON: `offset`, `dtype`, `shape`, `stride`."""
DONE = 128
"""In the region `words`: the offset from the judge's word to the candidate's."""
POISON = 0xFF
"""NaN in every floating-point type, of a kind that no GPU computes; -1 in signed integers."""
FILLING = 0x7A
"""What memory is filled with before the call that shows which elements are never written.

It differs from `POISON`, which memory held before. It is large in every floating-point type, and
not the smallest or largest value of any type.
"""
_PERTURB = -6
"""M_PERTURB of glibc: malloc fills memory with the complement of this option's lowest byte."""


class Region:
    """A mapped region; `bytes` is all of it as a uint8 tensor."""

    def __init__(self, data: torch.Tensor) -> None:
        self.bytes = data
        self.start = data.data_ptr()
        self.size = data.numel()

    def tensor(self, spec: Spec) -> torch.Tensor:
        """The tensor that `spec` describes, as a view into the region.

        Raises:
            ValueError: if it does not lie in the region; a spec may come from the other process.
        """
        offset, dtype, shape, stride = (
            spec["offset"],
            getattr(torch, spec["dtype"]),
            spec["shape"],
            spec["stride"],
        )
        if min((offset, *shape, *stride)) < 0 or offset % dtype.itemsize:
            raise ValueError("a tensor's place has negative numbers or is not aligned")
        end = offset + extent(shape, stride) * dtype.itemsize
        if end > self.size:
            raise ValueError(
                f"a tensor from {offset} to {end} does not lie in a region of {self.size} bytes"
            )
        return self.bytes[offset:end].view(dtype).as_strided(shape, stride)

    def pack(self, tensor: torch.Tensor, offset: int) -> tuple[Spec, int | None]:
        """Copies a tensor into the region, without gaps between its elements.

        Returns:
            Its spec there, and the bytes that it takes, aligned; None if there is no room.
        """
        spec = spec_of(torch.empty_like(tensor, device="meta"), offset)
        used = -(-extent(spec["shape"], spec["stride"]) * tensor.element_size() // 512) * 512
        if offset + used > self.size:
            return spec, None
        self.tensor(spec).copy_(tensor)
        return spec, used

    def close(self) -> None:
        """Unmaps the region and invalidates its tensors; a file stays until its last tensor."""
        device, self.bytes = self.bytes.device, torch.empty(0)
        if device.type == "cuda":
            cuda.close_handle(self.start)

    def offset_of(self, pointer: int) -> int | None:
        """The offset of an address; None if it is outside."""
        return pointer - self.start if self.start <= pointer < self.start + self.size else None


class Part(Region):
    """A part of a region, which stays mapped when the part is closed."""

    def __init__(self, whole: Region, offset: int, size: int) -> None:
        super().__init__(whole.bytes[offset : offset + size])

    def close(self) -> None:
        """Invalidates its tensors."""
        self.bytes = torch.empty(0)


def extent(shape: list[int], stride: list[int]) -> int:
    """Elements between the first and last of a strided tensor, inclusive; 0 if it is empty."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def spec_of(tensor: torch.Tensor, offset: int) -> Spec:
    """The spec of `tensor` with its first element at `offset`."""
    return {
        "offset": offset,
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
    }


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements fill a block without gaps or overlaps, in any order."""
    order = sorted(range(tensor.dim()), key=lambda i: (tensor.stride(i), tensor.size(i)))
    expected = 1
    for i in order:
        if tensor.size(i) != 1 and tensor.stride(i) != expected:
            return False
        expected *= tensor.size(i)
    return True


def is_compact(tensor: torch.Tensor) -> bool:
    """Whether a tensor is aligned, and gaps take no more than its elements."""
    aligned = tensor.data_ptr() % tensor.element_size() == 0
    return aligned and extent(list(tensor.shape), list(tensor.stride())) <= 2 * tensor.numel()


def map_file(fd: int, size: int) -> Region:
    """Maps a shared file; closes `fd`."""
    try:
        memory = mmap.mmap(fd, size)
    finally:
        os.close(fd)
    return Region(torch.frombuffer(memory, dtype=torch.uint8))


def map_handle(handle: str, size: int, device: torch.device) -> Region:
    """Maps another process's CUDA allocation."""
    return Region(cuda.as_tensor(cuda.open_handle(handle), size, device))


def poison(device: torch.device, filling: int = FILLING) -> None:
    """Fills memory cached by torch on a GPU; on a CPU, all later results of malloc."""
    if device.type == "cpu":
        ctypes.CDLL(None).mallopt(_PERTURB, 0x100 | (filling ^ 0xFF))  # 0 would disable it
        return
    torch.cuda.synchronize(device)
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "inactive" and segment["device"] == device.index:
                cuda.as_tensor(address, block["size"], device).fill_(filling)
            address += block["size"]
    torch.cuda.synchronize(device)
