"""Calls of CUDA that torch lacks: plain allocations and their IPC handles, and the last error.

Memory shared between processes is mapped whole, so it never comes from torch's caching allocator.
All calls need a current context, which torch creates when it first uses the device. Sizes in bytes.
"""

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

BLOCK = 2 << 20
"""The driver packs smaller allocations into blocks of this size; a handle maps a whole block."""
OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY of the driver, cudaErrorMemoryAllocation of the runtime."""
STICKY = {
    700: "illegal_access",
    716: "illegal_access",
    717: "illegal_access",
    718: "illegal_access",
}
"""CUresult codes that an invalid memory access, instruction or address leaves in a context."""
_NO_ERRORS = frozenset({0, 600, 704, 705})
"""cudaSuccess, and answers: not ready, and peer access that is already on or off."""
_BUFFER_ID = 7
"""CU_POINTER_ATTRIBUTE_BUFFER_ID."""
_AT_LEAST = 0
"""CU_STREAM_WAIT_VALUE_GEQ."""
_PLAIN_WRITE = 0
"""CU_STREAM_WRITE_VALUE_DEFAULT: with a fence, so that readers see earlier queued work."""
_DRIVER_CALLS = 1
"""CUPTI_CB_DOMAIN_DRIVER_API."""
_LAUNCHES = (307, 442, 477, 478, 652, 653)
"""CUPTI's numbers of `cuLaunchKernel`, `cuLaunchCooperativeKernel` and `cuLaunchKernelEx`, each for
both kinds of default streams; they never change.
"""


class CudaError(RuntimeError):
    """A driver call failed; `code` is CUresult."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} failed with CUDA error {code}")
        self.code = code


class _Call(ctypes.Structure):
    """The beginning of CUpti_CallbackData."""

    _fields_ = (
        ("after", ctypes.c_int), ("function", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
        ("result", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
    )  # fmt: skip


_Callback = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_Call)
)


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


@functools.cache
def _driver() -> ctypes.CDLL:
    library = ctypes.CDLL("libcuda.so.1")
    library.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, _Handle, ctypes.c_uint]
    return library


def call(name: str, *arguments: object) -> None:
    """Calls a function of the driver.

    Raises:
        CudaError: if it fails.
    """
    _require(_driver(), name, *arguments)


def allocate(size: int) -> int:
    """The address of a new allocation.

    Raises:
        OutOfMemoryError: torch's.
    """
    pointer = ctypes.c_uint64()
    try:
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    except CudaError as error:
        raise (
            torch.OutOfMemoryError(str(error)) if error.code == OUT_OF_MEMORY else error
        ) from None
    return pointer.value


def free(pointer: int) -> None:
    """Frees an allocation."""
    call("cuMemFree_v2", ctypes.c_uint64(pointer))


def export_handle(base: int) -> str:
    """The IPC handle, as hex, of the allocation that begins at `base`; cached by allocation."""
    identity = ctypes.c_uint64()  # differs between two allocations at one address
    call("cuPointerGetAttribute", ctypes.byref(identity), _BUFFER_ID, ctypes.c_uint64(base))
    return _exported(base, identity.value)


@functools.lru_cache(maxsize=1024)
def _exported(base: int, _identity: int) -> str:
    handle = _Handle()
    call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
    return bytes(handle.bytes).hex()


def open_handle(handle: str) -> int:
    """Maps another process's allocation and returns its address here."""
    pointer = ctypes.c_uint64()
    call(
        "cuIpcOpenMemHandle_v2",
        ctypes.byref(pointer),
        _Handle.from_buffer_copy(bytes.fromhex(handle)),
        1,
    )
    return pointer.value


def close_handle(pointer: int) -> None:
    """Unmaps what `open_handle` mapped."""
    call("cuIpcCloseMemHandle", ctypes.c_uint64(pointer))


def allocation_of(pointer: int) -> tuple[int, int]:
    """Base address and size of the allocation that `pointer` lies in."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    call(
        "cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)
    )
    return base.value, size.value


def context_error() -> int:
    """The sticky error of the current context: 0 when it is healthy."""
    return int(_driver().cuCtxSynchronize())


def take_error(runtime: Any | None = None) -> str:
    """What the CUDA runtime last reported in this thread, which is then forgotten; "" if nothing.

    A kernel whose launch is refused, such as for its number of threads, does not run, and nothing
    else fails. torch reports it only if one of its own kernels is launched next.

    Args:
        runtime: the runtime library; by default the one that torch has loaded. Extensions that
            torch builds share it; a library that nvcc links has its own, which cannot be read.
    """
    runtime = runtime or _runtime()
    if runtime is None:
        return ""
    code = runtime.cudaGetLastError()
    return "" if code in _NO_ERRORS else runtime.cudaGetErrorString(code).decode()


@functools.cache
def _runtime() -> Any | None:
    version = (torch.version.cuda or "").split(".")[0]
    try:
        library = ctypes.CDLL(f"libcudart.so.{version}", ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)
    except OSError:  # linked statically, so that its errors cannot be read
        return None
    library.cudaGetErrorString.restype = ctypes.c_char_p
    return library


def wait_for(pointer: int, value: int) -> None:
    """Makes later work on the current stream wait until the word is at least `value`."""
    stream = torch.cuda.current_stream().cuda_stream
    call(
        "cuStreamWaitValue32_v2",
        ctypes.c_void_p(stream),
        ctypes.c_uint64(pointer),
        ctypes.c_uint32(value),
        _AT_LEAST,
    )


def write_word(pointer: int, value: int) -> None:
    """Writes a word once earlier work on the current stream is done."""
    stream = torch.cuda.current_stream().cuda_stream
    call(
        "cuStreamWriteValue32_v2",
        ctypes.c_void_p(stream),
        ctypes.c_uint64(pointer),
        ctypes.c_uint32(value),
        _PLAIN_WRITE,
    )


def copy_2d(parameters: object) -> None:
    """Queues a copy on the current stream; `parameters` refers to a CUDA_MEMCPY2D."""
    call("cuMemcpy2DAsync_v2", parameters, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


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


@contextmanager
def launches(note: Callable[[str], None]) -> Iterator[None]:
    """Calls `note` with the name of each kernel that this process launches, by whatever means.

    Raises:
        OSError: if CUPTI, which torch brings, is not there.
        CudaError: if it cannot be used; it serves one at a time.
    """
    cupti = ctypes.CDLL(f"libcupti.so.{(torch.version.cuda or '').partition('.')[0]}")
    subscriber = ctypes.c_void_p()

    def called(_: Any, domain: int, number: int, about: Any) -> None:
        if not about[0].after and about[0].symbol:
            note(_demangled(about[0].symbol))

    callback = _Callback(called)
    _require(cupti, "cuptiSubscribe", ctypes.byref(subscriber), callback, None)
    try:
        for number in _LAUNCHES:
            _require(cupti, "cuptiEnableCallback", 1, subscriber, _DRIVER_CALLS, number)
        yield
    finally:
        cupti.cuptiUnsubscribe(subscriber)


def _require(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    if code := getattr(library, name)(*arguments):
        raise CudaError(name, code)


def _demangled(name: bytes) -> str:
    """The name of a C++ function as in its source; any other name as it is."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    place = library.__cxa_demangle(name, None, None, None)
    if not place:
        return name.decode(errors="replace")
    try:
        return ctypes.string_at(place).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(place))
