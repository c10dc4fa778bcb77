"""Records a call of the submission: operations that torch dispatches, and own kernels.

All of it happens in the submission's process, which it may have rewritten: a claim. The judge
applies the rules to it (`kevin_env.rules.recorded`), and decides which operations are recorded.
"""

import gc
import os
import re
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from ctypes import CDLL
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._C import _get_dispatch_mode, _TorchDispatchModeKey
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from kevin_env.candidate import cuda
from kevin_env.candidate.tree import tensors_in

MOST, LONGEST = 64, 160
"""Entries of each list in the record, and characters of a name."""
LAUNCHERS = (
    ("triton.runtime.jit", "JITFunction", "run"),
    ("triton.runtime.interpreter", "GridExecutor", "__call__"),
    ("triton.compiler.compiler", "CompiledKernel", "__getitem__"),
    ("torch.cuda._utils", "_CudaKernel", "__call__"),
    ("torch.cuda.jiterator", "_JittedFunction", "__call__"),
    ("cuda.bindings.driver", "cuLaunchKernel"),
    ("cuda.bindings.driver", "cuLaunchKernelEx"),
)
"""Launchers of kernels written in Python or compiled from a string: a module, and a path in it."""
_DRIVER = frozenset(
    ["cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cudaLaunchKernel"]
)
"""Launchers through ctypes: a CDLL caches each function that was looked up."""
_PACKAGES = ("cupy", "numba", "pycuda", "cuda.core", "cutlass", "tilelang", "cuda.tile")
"""Packages with launchers of their own: with one of them, the driver says what is launched."""
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TILELANG_CACHE_DIR")
"""Folders of libraries that Triton, torch and TileLang built."""
_INSTALLED = str(Path(torch.__file__).parents[1])
_DYNAMIC_SYMBOLS = 11


class Recorder:
    """Records one call, and what streams capture while its model is constructed.

    Args:
        path: The submission's file.
        earlier: Names of own kernels launched or captured so far; the recorder adds to it. A
            replayed graph may hold any of them.
        operations: Whether to record operations, too.
        harmless: Names of operations to leave out.
        namespaces: Of torch's operators; for all others, the operations that they dispatch count.
        vendors: Pattern for the beginning of symbols of vendors' libraries.
        libraries: Pattern for names of kernels of torch and of vendors.
    """

    def __init__(
        self, path: str, earlier: dict[str, None], operations: bool, harmless: list[str],
        namespaces: list[str], vendors: str, libraries: str,
    ) -> None:  # fmt: skip
        self._path = path
        self._earlier = earlier
        self._kernels: dict[str, None] = {}
        self._record_operations = operations
        self._harmless, self._namespaces = frozenset(harmless), frozenset(namespaces)
        self._vendors, self._of_libraries = re.compile(vendors), re.compile(libraries)
        self._preparing = False
        self._imagined = _get_dispatch_mode(_TorchDispatchModeKey.FAKE) is not None
        self._operations: dict[tuple[str, int | None, bool], int] = {}
        self._packed: set[int] = set()
        """Storages that hold weights or copies of them."""
        self._libraries: dict[str, Library] = {}
        self._hooked: dict[str, Library] = {}
        """Those that define Python modules and are still observed."""

    @contextmanager
    def watch(self, model: Any = None) -> Iterator[None]:
        """Records a call of the model or, without one, its construction."""
        self._preparing = model is None
        if isinstance(model, torch.nn.Module):
            self._packed = {_storage(each) for each in (*model.parameters(), *model.buffers())}
        self._libraries = {} if self._preparing else self._loaded()
        self._hooked = {
            path: library for path, library in self._libraries.items() if library.modules
        }
        with ExitStack() as stack:
            for module, *path in LAUNCHERS:
                owner: Any = sys.modules.get(module)
                for name in path[:-1]:
                    owner = getattr(owner, name, None)
                stack.enter_context(_replaced(owner, path[-1], self._counting))
            stack.enter_context(_replaced(torch.cuda.CUDAGraph, "replay", self._counting_replays))
            if torch.cuda.is_initialized() and any(name in sys.modules for name in _PACKAGES):
                self._watch_launches(stack)
            if self._hooked:  # the hook would slow down Triton's compiler
                stack.callback(self._unhook)
                threading.setprofile(self._profile_hook)
                sys.setprofile(self._profile_hook)
            if self._record_operations:
                if "torch._dynamo" in sys.modules:  # under a mode it would never compile
                    stack.enter_context(torch.compiler.set_stance("force_eager"))
                stack.enter_context(_Mode(self))
            yield

    def record(self) -> dict[str, Any]:
        """The record as JSON."""
        if "numba" in sys.modules and not torch.cuda.is_initialized():
            self._kernels["numba"] = None  # nothing sees what it calls on a CPU
        compiled = getattr(
            sys.modules.get("torch._higher_order_ops.triton_kernel_wrap"), "kernel_side_table", None
        )
        if compiled is not None:  # Triton kernels inside compiled functions
            self._kernels.update(
                {_title(kernel): None for kernel in compiled.id_to_kernel.values()}
            )
        loaded = self._loaded()
        for path, library in loaded.items():
            if path not in self._libraries or not library.modules:  # whose calls are not observed
                self._kernels[_name(path)] = None
        if not self._kernels:
            self._find_launchers(gc.get_objects(), loaded)
        self._earlier.update(self._kernels)
        called = [library for path, library in loaded.items() if _name(path) in self._kernels]
        symbols = [
            name for library in called for name in library.undefined if self._vendors.match(name)
        ]
        return {
            "operations": [
                {"name": name, "line": line, "weights": weights, "elements": elements}
                for (name, line, weights), elements in self._operations.items()
            ],
            "kernels": list(self._kernels)[:MOST],
            "symbols": [name[:LONGEST] for name in symbols[:MOST]],
        }

    def _find_launchers(self, objects: list[Any], loaded: "dict[str, Library]") -> None:
        """Finds possible launchers: driver functions, and classes of an extension."""
        if any(_DRIVER & vars(each).keys() for each in objects if type(each) is CDLL):
            self._kernels["ctypes"] = None
        modules = {each.__module__ for each in objects if issubclass(type(each), type)}
        self._kernels.update(
            {_name(path): None for path, library in loaded.items() if library.modules & modules}
        )

    def note(self, name: str, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Records an operation with its tensor arguments and results.

        Not where they have no bytes, in a process that has a device: a compiler traces then.
        """
        if not self._imagined and (inputs or outputs) and all(map(_is_fake, (*inputs, *outputs))):
            return
        weights = bool(inputs) and all(_storage(each) in self._packed for each in inputs)
        (self._packed.update if weights else self._packed.difference_update)(map(_storage, outputs))
        if (
            name in self._harmless
            or name.partition("::")[0] not in self._namespaces
            or not self._counts()
        ):
            return
        elements = max((each.numel() for each in (*inputs, *outputs)), default=0)
        key = (name[:LONGEST], self._line(sys._getframe(1)), weights)
        if key in self._operations or len(self._operations) < MOST:
            self._operations[key] = max(elements, self._operations.get(key, 0))

    def _counts(self) -> bool:
        return not self._preparing or torch.cuda.is_current_stream_capturing()

    def _line(self, frame: FrameType | None) -> int | None:
        """The innermost line of the submission in the call stack."""
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        return frame.f_lineno if frame else None

    def _loaded(self) -> "dict[str, Library]":
        """Loaded libraries in the submission's folder, except those by Triton and torch."""
        caches = tuple(os.environ[name] for name in _CACHES if os.environ.get(name))
        with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
            paths = {
                line.split(None, 5)[5].rstrip("\n")
                for line in maps
                if " r-xp " in line and "/" in line
            }
        folder = str(Path(self._path).parent)
        return {
            path: library_at(path)
            for path in paths
            if path.startswith(folder) and not path.startswith(caches)
        }

    def _watch_launches(self, stack: ExitStack) -> None:
        """Has the driver report what is launched; without it, none of these launches counts."""
        try:
            stack.enter_context(cuda.launches(self._note_launch))
        except (OSError, cuda.CudaError) as error:
            sys.stderr.write(f"launches of {', '.join(_PACKAGES)} are not seen: {error}\n")

    def _note_launch(self, name: str) -> None:
        if not self._of_libraries.search(name):
            (self._earlier if self._preparing else self._kernels)[name[:LONGEST]] = None

    def _counting(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(launch)
        def counted(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            function = getattr(kernel, "fn", kernel)
            file = getattr(getattr(function, "__code__", None), "co_filename", "")
            if not kwargs.get("warmup") and not file.startswith(_INSTALLED) and self._counts():
                (self._earlier if self._preparing else self._kernels)[_title(kernel)] = None
            return launch(kernel, *args, **kwargs)

        return counted

    def _counting_replays(self, replay: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(replay)
        def counted(graph: Any) -> Any:
            self._kernels.update(self._earlier | {_name(path): None for path in self._libraries})
            return replay(graph)

        return counted

    def _unhook(self) -> None:
        """Other threads drop the hook at their next event."""
        self._hooked = {}
        threading.setprofile(None)
        sys.setprofile(None)

    def _profile_hook(self, frame: FrameType, event: str, function: Any) -> None:
        """Profile hook of Python: a C function is about to be called."""
        if event == "c_call":
            module = str(getattr(function, "__module__", ""))
            operator = (
                module.startswith("torch._ops.") and module.split(".")[2] not in self._namespaces
            )
            for path, library in self._hooked.items():
                if operator or module.partition(".")[0] in library.modules:
                    self._kernels[_name(path)] = None
            if all(_name(path) in self._kernels for path in self._hooked):
                sys.setprofile(None)  # all were called


class _Mode(TorchDispatchMode):
    """Records every operation that torch dispatches in a thread."""

    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise the first operation would import torch's compiler, which takes a second."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "namespace", "") == "prim":  # asks where a tensor without bytes is
            return func(*args, **(kwargs or {}))
        inputs = list(tensors_in((args, kwargs)))
        result = self._run(func, inputs, args, kwargs or {})
        name = func._schema.name if hasattr(func, "_schema") else f"{func.namespace}::{func.name()}"
        self._recorder.note(name, inputs, list(tensors_in(result)))
        return result

    def _run(self, func: Any, inputs: list[torch.Tensor], args: Any, kwargs: Any) -> Any:
        """Also records what an operator that is not torch's dispatches in turn."""
        if getattr(func, "namespace", "aten") == "aten" or not hasattr(func, "redispatch"):
            return func(*args, **kwargs)
        keys = torch._C.DispatchKey
        on_gpu = any(each.is_cuda for each in inputs) or (
            not inputs and torch.cuda.is_initialized()
        )
        with self:
            return func.redispatch(
                torch._C.DispatchKeySet(keys.CUDA if on_gpu else keys.CPU), *args, **kwargs
            )


@dataclass(frozen=True)
class Library:
    """A shared library: the Python modules it defines, and the symbols it imports."""

    modules: frozenset[str]
    undefined: tuple[str, ...]


@cache
def library_at(path: str) -> Library:
    """Reads a library; an empty one if it is gone or no ELF file."""
    modules, undefined = list[str](), list[str]()
    with suppress(OSError, struct.error, ValueError, IndexError):  # gone, or no 64-bit ELF file
        data = Path(path).read_bytes()
        for start, defined in _symbols(data):
            if not defined:
                undefined.append(data[start : data.index(b"\0", start)].decode(errors="replace"))
            elif data.startswith(b"PyInit_", start):
                modules.append(data[start + 7 : data.index(b"\0", start)].decode(errors="replace"))
    return Library(frozenset(modules), tuple(undefined))


def _symbols(data: bytes) -> Iterator[tuple[int, bool]]:
    """Name offsets of an ELF file's dynamic symbols, and whether they are defined in it.

    System V ABI, part 4.
    """
    (offset,), (size, count) = (
        struct.unpack_from("<Q", data, 40),
        struct.unpack_from("<HH", data, 58),
    )
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, offset + size * number) for number in range(count)
    ]
    for section in sections:
        if section[1] == _DYNAMIC_SYMBOLS:
            entries = data[section[4] : section[4] + section[5]]
            for name, _, _, index, _, _ in struct.iter_unpack("<IBBHQQ", entries):
                yield sections[section[6]][4] + name, index != 0


@contextmanager
def _replaced(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Replaces a function by `wrap(function)` while entered, if it exists."""
    original = getattr(owner, name, None)
    if original is None:
        yield
        return
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, FakeTensor) or tensor.is_meta


def _storage(tensor: torch.Tensor) -> int:
    """Identifies the memory of a tensor."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):  # not strided
        return id(tensor)


def _title(kernel: Any) -> str:
    return str(getattr(getattr(kernel, "fn", kernel), "__name__", "kernel"))[:LONGEST]


def _name(path: str) -> str:
    return Path(path).name[:LONGEST]
