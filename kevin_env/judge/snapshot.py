"""A look at an output at the moment the clock stops, by the device's copy engine.

A device-to-host copy does not wait for the kernels that another process has queued, while a kernel of the judge's own
would: the device runs that queue out first, and an output that was claimed too early would look finished.
"""

import ctypes

import torch

ROWS = 64
ROW_BYTES = 1024
_HOST, _DEVICE = 1, 2
_SIDE = (
    *(("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("type", ctypes.c_uint), ("host", ctypes.c_void_p)),
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
    """Reusable: `take` inside the window, `agrees` afterwards with the same bytes."""

    def __init__(self) -> None:
        self._host = torch.empty(ROWS * ROW_BYTES, dtype=torch.uint8, pin_memory=True)
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._place = (0, 0, 0, 0)

    def take(self, flat: torch.Tensor, chance: float) -> None:
        """Copies at most 64 KiB, spread over `flat`, and waits for it.

        Args:
            flat: Device memory.
            chance: From 0 to below 1; says where it begins. Nobody else may know it.
        """
        size = flat.numel()
        rows = min(ROWS, max(1, size // ROW_BYTES))
        width = min(ROW_BYTES, size // rows)
        pitch = size // rows
        first = int(chance * (pitch - width + 1))
        self._place = (first, pitch, width, rows)
        copy = _Copy2D()
        copy.source_type, copy.source_device, copy.source_pitch = _DEVICE, flat.data_ptr() + first, pitch
        copy.target_type, copy.target_host, copy.target_pitch = _HOST, self._host.data_ptr(), width
        copy.width, copy.height = width, rows
        code = self._driver.cuMemcpy2DUnaligned_v2(ctypes.byref(copy))
        if code:
            raise RuntimeError(f"cuMemcpy2DUnaligned failed with CUDA error {code}")

    def agrees(self, flat: torch.Tensor) -> bool:
        """Whether those bytes are still the same."""
        first, pitch, width, rows = self._place
        if rows == 0 or width == 0:
            return True
        later = flat[first:].as_strided((rows, width), (pitch, 1)).cpu()
        # not by torch.equal, whose threads took milliseconds to come together beside processes that spin
        return later.numpy().tobytes() == self._host[: rows * width].numpy().tobytes()
