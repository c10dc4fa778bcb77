"""A look at an output at the moment the clock stops, by the device's copy engine.

A device-to-host copy does not wait for the kernels that another process has queued, while a kernel
of the judge's own would: the device runs that queue out first, and an output that was claimed too
early would look finished.
"""

import ctypes
import secrets

import torch

from kevin_env.candidate import cuda

ROWS = 64
ROW_BYTES = 1024
_HOST, _DEVICE = 1, 2
_SIDE = (
    *(
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("type", ctypes.c_uint),
        ("host", ctypes.c_void_p),
    ),
    *(("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("pitch", ctypes.c_size_t)),
)


class _Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D of the driver API."""

    _fields_ = (
        *((f"{side}_{name}", kind) for side in ("source", "target") for name, kind in _SIDE),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class Snapshot:
    """At most 64 KiB of an output, from places that are drawn when this is made.

    Args:
        flat: Device memory, not empty.
    """

    def __init__(self, flat: torch.Tensor) -> None:
        size = flat.numel()
        rows = min(ROWS, max(1, size // ROW_BYTES))
        width, pitch = min(ROW_BYTES, size // rows), size // rows
        first = secrets.randbelow(pitch - width + 1)
        self._there = flat[first:].as_strided((rows, width), (pitch, 1))
        self._host = torch.empty((rows, width), dtype=torch.uint8, pin_memory=True)
        self._later = torch.empty((rows, width), dtype=torch.uint8, device=flat.device)

    def take(self) -> None:
        """Queues the copy."""
        rows, width = self._there.shape
        copy = _Copy2D()
        copy.source_type, copy.source_device = _DEVICE, self._there.data_ptr()
        copy.source_pitch = self._there.stride(0)
        copy.target_type, copy.target_host, copy.target_pitch = _HOST, self._host.data_ptr(), width
        copy.width, copy.height = width, rows
        cuda.copy_2d(ctypes.byref(copy))

    def take_again(self) -> None:
        """Queues a copy of the same places by a kernel, for which all that the candidate has queued
        goes first.
        """
        self._later.copy_(self._there)

    def agrees(self) -> bool:
        """Whether both copies are the same, once they are done."""
        # not by torch.equal, whose threads took milliseconds to come together beside processes that
        # spin
        return self._later.cpu().numpy().tobytes() == self._host.numpy().tobytes()
