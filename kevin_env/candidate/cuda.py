"""The few calls of the CUDA driver that torch does not offer: plain allocations and their IPC
handles.

Memory that is shared between processes is mapped whole, so it never comes from torch's caching
allocator. All calls need a current context (torch makes one at its first use of the device). Sizes
in bytes.
"""

import ctypes
import functools

import torch

BLOCK = 2 << 20
"""The driver packs smaller allocations into blocks of this size; a handle maps a block whole."""
OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY of the driver, cudaErrorMemoryAllocation of the runtime."""
STICKY = {
    700: "illegal_access",
    716: "illegal_access",
    717: "illegal_access",
    718: "illegal_access",
}
"""Driver error codes that an invalid memory access, instruction or address leaves behind in a
context.
"""

_BUFFER_ID = 7
"""CU_POINTER_ATTRIBUTE_BUFFER_ID."""

_AT_LEAST = 0
"""CU_STREAM_WAIT_VALUE_GEQ."""
_PLAIN_WRITE = 0
"""CU_STREAM_WRITE_VALUE_DEFAULT: with a fence, so that what was queued before is visible to whoever
reads the word.
"""


class CudaError(RuntimeError):
    """A driver call failed; `code` is CUresult."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} failed with CUDA error {code}")
        self.code = code


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


@functools.cache
def _driver() -> ctypes.CDLL:
    library = ctypes.CDLL("libcuda.so.1")
    library.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, _Handle, ctypes.c_uint]
    return library


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise CudaError(name, code)


def allocate(size: int) -> int:
    """The address of a fresh allocation of its own.

    Raises:
        OutOfMemoryError: torch's, when there is no room.
    """
    pointer = ctypes.c_uint64()
    try:
        _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    except CudaError as error:
        raise (
            torch.OutOfMemoryError(str(error)) if error.code == OUT_OF_MEMORY else error
        ) from None
    return pointer.value


def free(pointer: int) -> None:
    """Gives an allocation back."""
    _call("cuMemFree_v2", ctypes.c_uint64(pointer))


def export_handle(base: int) -> str:
    """The IPC handle, as hex, of the allocation that begins at `base`; asked for once in the life
    of an allocation.
    """
    identity = ctypes.c_uint64()  # of two allocations at one address, too, it is another
    _call("cuPointerGetAttribute", ctypes.byref(identity), _BUFFER_ID, ctypes.c_uint64(base))
    return _exported(base, identity.value)


@functools.lru_cache(maxsize=1024)
def _exported(base: int, _identity: int) -> str:
    handle = _Handle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
    return bytes(handle.bytes).hex()


def open_handle(handle: str) -> int:
    """Maps another process's allocation and gives its address here."""
    pointer = ctypes.c_uint64()
    _call(
        "cuIpcOpenMemHandle_v2",
        ctypes.byref(pointer),
        _Handle.from_buffer_copy(bytes.fromhex(handle)),
        1,
    )
    return pointer.value


def close_handle(pointer: int) -> None:
    """Unmaps what `open_handle` mapped."""
    _call("cuIpcCloseMemHandle", ctypes.c_uint64(pointer))


def allocation_of(pointer: int) -> tuple[int, int]:
    """Base address and size of the allocation that `pointer` lies in."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    _call(
        "cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)
    )
    return base.value, size.value


def context_error() -> int:
    """The sticky error of the current context: 0 when it is healthy."""
    return int(_driver().cuCtxSynchronize())


def wait_for(pointer: int, value: int) -> None:
    """Has what is queued on the current stream from now on wait until the word there is no less
    than `value`.
    """
    stream = torch.cuda.current_stream().cuda_stream
    _call(
        "cuStreamWaitValue32_v2",
        ctypes.c_void_p(stream),
        ctypes.c_uint64(pointer),
        ctypes.c_uint32(value),
        _AT_LEAST,
    )


def write_word(pointer: int, value: int) -> None:
    """Has the current stream write a word, once it has done what was queued before."""
    stream = torch.cuda.current_stream().cuda_stream
    _call(
        "cuStreamWriteValue32_v2",
        ctypes.c_void_p(stream),
        ctypes.c_uint64(pointer),
        ctypes.c_uint32(value),
        _PLAIN_WRITE,
    )


def copy_2d(parameters: object) -> None:
    """Queues a copy on the current stream, of which `parameters` refer to a CUDA_MEMCPY2D; host
    memory is pinned.
    """
    _call(
        "cuMemcpy2DAsync_v2", parameters, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    )


class _Array:
    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }


def as_tensor(pointer: int, size: int, device: torch.device) -> torch.Tensor:
    """The memory at `pointer` as a uint8 tensor that does not own it."""
    return torch.as_tensor(_Array(pointer, size), device=device)
