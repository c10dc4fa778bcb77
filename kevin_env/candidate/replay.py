"""Plays a recorded list of launches on the memory of this process (`kevin_env.candidate.tape`).

A recording comes from a submission, so all of it is checked: views lie in their buffers, and
operations are those of `PLAYED`. Its kernels may do anything that a kernel can.
"""

import base64
import ctypes
import math
import statistics
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import repeat
from typing import Any

import torch

from kevin_env.candidate import cuda, tree
from kevin_env.candidate.region import Part, Region

Json = dict[str, Any]
FILLS = frozenset(
    [
        "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full",
        "full_like", "new_full", "zero_", "fill_", "scalar_tensor", "arange",
    ]
)  # fmt: skip
MOVES = frozenset(
    [
        "_to_copy", "clone", "copy_", "lift_fresh", "lift_fresh_copy", "contiguous", "cat",
        "stack", "constant_pad_nd", "repeat", "_pin_memory",
    ]
)  # fmt: skip
COMPUTED = frozenset(
    [
        "abs", "add", "add_", "addmm", "addbmm", "amax", "amin", "argmax", "argmin",
        "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d",
        "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "baddbmm", "bmm", "bitwise_and",
        "bitwise_or", "clamp", "clamp_", "clamp_min", "clamp_max", "convolution", "cos",
        "cumsum", "div", "div_", "elu", "eq", "exp", "exp_", "erf", "floor", "ge", "gelu",
        "gt", "hardtanh", "hardsigmoid", "hardswish", "index_select", "gather", "le",
        "leaky_relu", "log", "log1p", "_log_softmax", "logsumexp", "lt", "masked_fill",
        "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum", "mean",
        "min", "minimum", "mish", "mm", "mul", "mul_", "mv", "native_batch_norm",
        "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
        "native_group_norm", "native_layer_norm", "ne", "neg", "pow", "prod", "reciprocal",
        "relu", "relu_", "remainder", "rsqrt", "rsub", "sigmoid", "sigmoid_", "sign",
        "silu", "silu_", "sin", "_softmax", "softplus", "sqrt", "square", "sub", "sub_",
        "sum", "tanh", "tanh_", "tril", "triu", "upsample_nearest2d", "var", "var_mean",
        "where", "std", "norm", "linalg_vector_norm",
    ]
)  # fmt: skip
PLAYED = FILLS | MOVES | COMPUTED
"""Operations of torch that a list may contain, by name: they read and write their tensors only."""
SHARED = ("weights", "inbox")
"""Regions that buffers may lie in."""
MOST_BYTES = 1 << 40
"""Of a buffer."""
TRIALS = 3
"""Timed runs of each alternative, after one that is not."""
_OPTIN = 48 << 10
"""Bytes of shared memory from which a kernel has to ask."""
_MAX_DYNAMIC_SHARED, _PREFER_SHARED = 8, 1


class Unplayable(Exception):
    """A recording cannot be played: the submission needs a process of its own."""


class Kernel:
    """A compiled kernel, loaded into the current context.

    Args:
        about: As a tape describes it: `cubin` in base64, `name`, and numbers of its metadata.
    """

    def __init__(self, about: Json) -> None:
        self.threads = 32 * int(about["num_warps"])
        self.shared = int(about["shared"])
        self.scratch = [int(each) for each in about["scratch"]]
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        image = base64.b64decode(about["cubin"])
        cuda.call("cuModuleLoadData", ctypes.byref(self._module), image)
        name = str(about["name"]).encode()
        cuda.call("cuModuleGetFunction", ctypes.byref(self._function), self._module, name)
        if self.shared > _OPTIN:
            cuda.call("cuFuncSetCacheConfig", self._function, _PREFER_SHARED)
            cuda.call("cuFuncSetAttribute", self._function, _MAX_DYNAMIC_SHARED, self.shared)

    def launch(self, grid: list[int], parameters: Any) -> None:
        """Queues it on the current stream; `parameters` is an array of addresses of values."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sizes = (*grid, self.threads, 1, 1, self.shared)
        cuda.call("cuLaunchKernel", self._function, *sizes, stream, parameters, None)

    def unload(self) -> None:
        """Takes it out of the context."""
        module, self._module = self._module, ctypes.c_void_p()
        cuda.call("cuModuleUnload", module)


class Replay:
    """A recorded submission in one case, called like its model.

    Args:
        case: As `Tape.case` returns it.
        kernels: By the names that it uses.
        regions: Memory that is shared with the judge, by name.
        device: Where it runs.

    Raises:
        Unplayable: if it is not a recording.
        RuntimeError: if CUDA fails.
    """

    def __init__(
        self, case: Json, kernels: dict[str, Kernel], regions: dict[str, Region],
        device: torch.device,
    ) -> None:  # fmt: skip
        self._kernels, self._regions, self._device = kernels, regions, device
        self._buffers: list[Json] = case["buffers"]
        self._memory = dict[int, Region]()
        self._chosen = dict[str, int]()
        self._first = True
        self._calls = case["first"], case["later"]
        first, later = (
            _used(call["steps"]) | {view[0] for view in call["tensors"]} for call in self._calls
        )
        self._kept = (first | later) & _used(case["prepare"]) | (first & later)
        with torch.no_grad():
            self._play(case["prepare"])
        self._last_uses = [_last_uses(call) for call in self._calls]

    def __call__(self, *_: Any) -> Any:
        """What `ModelNew.forward` returns. Its inputs are at the places that were recorded."""
        call, last_uses = self._calls[not self._first], self._last_uses[not self._first]
        self._first = False
        self._play(call["steps"], last_uses)
        tensors = [self._view(each) for each in call["tensors"]]
        self._drop(list(self._memory))
        return tree.unflatten(call["output"], tensors)

    def _play(self, steps: list[Json], last_uses: Iterable[list[int]] = repeat([])) -> None:
        for step, unused in zip(steps, last_uses, strict=False):
            if "kernel" in step:
                self._launch(step)
            elif "choice" in step:
                self._play(step["options"][self._choice(step)])
            else:
                self._operate(step)
            self._drop(unused)

    def _drop(self, buffers: Iterable[int]) -> None:
        """Frees buffers, but for those that outlive a call."""
        for number in buffers:
            if number not in self._kept:
                self._memory.pop(number, None)

    def _launch(self, step: Json) -> None:
        grid = [int(each) for each in step["grid"]]
        if 0 in grid:
            return
        kernel = self._kernels[step["kernel"]]
        values, scratch = [self._value(*each) for each in step["parameters"]], list[torch.Tensor]()
        for size in kernel.scratch:  # follows the parameters in all versions of Triton
            address = 0
            if size:
                room = torch.empty(size * math.prod(grid), dtype=torch.uint8, device=self._device)
                scratch.append(room)
                address = room.data_ptr()
            values.append(ctypes.c_uint64(address))
        array = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        kernel.launch(grid, array)

    def _value(self, kind: str, value: Any) -> Any:
        """A parameter as Triton's launcher passes it."""
        if isinstance(value, list):
            number, offset = value
            return ctypes.c_uint64(self._region(number).start + offset)
        if isinstance(value, str):
            value = float.fromhex(value)
        if kind == "fp16":
            return ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", value))[0])
        if kind == "bf16":
            bits = torch.tensor(value, dtype=torch.bfloat16).view(torch.int16).item()
            return ctypes.c_int16(int(bits))
        if kind in ("fp32", "f32"):
            return ctypes.c_float(value)
        if kind == "fp64":
            return ctypes.c_double(value)
        if kind.startswith("*"):
            return ctypes.c_uint64(int(value or 0))
        bits = max(8, int(kind[1:]))
        return getattr(ctypes, f"c_{'u' if kind[0] == 'u' else ''}int{bits}")(int(value))

    def _operate(self, step: Json) -> None:
        name, overload = step["op"]
        if name not in PLAYED:
            raise Unplayable(f"the operation {name}")
        function = getattr(getattr(torch.ops.aten, name), overload)
        arguments = [self._argument(each) for each in step["args"]]
        named = {key: self._argument(each) for key, each in step["kwargs"].items()}
        made = tree.tensors_in(function(*arguments, **named))
        for view, tensor in zip(step["outs"], made, strict=True):
            if view is not None:
                self._keep(view, tensor)

    def _keep(self, view: list[Any], tensor: torch.Tensor) -> None:
        """Takes a new tensor as a buffer; copies it if its layout is not the recorded one."""
        number, dtype, shape, stride, offset = view
        fits = (
            tensor.dtype == getattr(torch, dtype) and list(tensor.shape) == shape
            and list(tensor.stride()) == stride and tensor.storage_offset() == offset
        )  # fmt: skip
        if fits and tensor.untyped_storage().nbytes() >= self._buffers[number]["bytes"]:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
            self._memory[number] = Region(whole.set_(tensor.untyped_storage()))
            return
        self._memory.pop(number, None)
        self._view(view).copy_(tensor)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._argument(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        match kind:
            case "tensor":
                return self._view(content)
            case "float":
                return float.fromhex(content)
            case "torch":
                return vars(torch)[content]
            case "device":
                return self._device if content == "cuda" else torch.device("cpu")
        raise Unplayable("an argument of an unknown kind")

    def _view(self, view: list[Any]) -> torch.Tensor:
        number, dtype, shape, stride, offset = view
        place = offset * getattr(torch, dtype).itemsize
        spec = {"offset": place, "dtype": dtype, "shape": shape, "stride": stride}
        return self._region(number).tensor(spec)

    def _region(self, number: int) -> Region:
        """The memory of a buffer, which is allocated at its first use."""
        if number in self._memory:
            return self._memory[number]
        about = self._buffers[number]
        size = int(about["bytes"])
        if not 0 <= size <= MOST_BYTES:
            raise Unplayable("a buffer of no size")
        if about.get("in"):
            name, offset = about["in"]
            region = self._regions[name]
            if name not in SHARED:
                raise Unplayable("memory that is not for it")
            if not 0 <= offset <= offset + size <= region.size:
                raise Unplayable("a buffer outside of the shared memory")
            self._memory[number] = Part(region, offset, size)
        elif "data" in about:
            data = bytearray(base64.b64decode(about["data"]))
            self._memory[number] = Region(torch.frombuffer(data, dtype=torch.uint8))
        else:
            where = self._device if about["device"] == "cuda" else torch.device("cpu")
            data = torch.empty(max(1, size), dtype=torch.uint8, device=where)
            self._memory[number] = Region(data)
        return self._memory[number]

    def _choice(self, step: Json) -> int:
        """The fastest of several ways, which is measured at its first use, as by an autotuner."""
        name, options = str(step["choice"]), step["options"]
        if name not in self._chosen:
            before = {each: self._region(each).bytes.clone() for each in step["uses"]}
            seconds = [self._measured(partial(self._play, steps)) for steps in options]
            self._chosen[name] = seconds.index(min(seconds))
            if seconds[self._chosen[name]] == math.inf:
                raise Unplayable("no configuration of a kernel can be launched")
            for each, data in before.items():
                self._region(each).bytes.copy_(data)
        return self._chosen[name]

    @staticmethod
    def _measured(run: Callable[[], None]) -> float:
        """Typical milliseconds; infinite if it cannot be launched."""
        try:
            run()
        except cuda.CudaError:
            return math.inf
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(TRIALS)]
        for start, end in events:
            start.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in events)


class Recorded:
    """In place of a recorder: what the submission's calls did when they were recorded."""

    def __init__(self, record: Json) -> None:
        self._record = record

    def watch(self, _: Any = None) -> Any:
        """Nothing is to be watched."""
        return nullcontext()

    def record(self) -> Json:
        """As `Recorder.record`."""
        return self._record


def _last_uses(call: Json) -> list[list[int]]:
    """For each step of a call, the buffers that are needed neither later nor as outputs."""
    outputs = {view[0] for view in call["tensors"]}
    last = {number: at for at, step in enumerate(call["steps"]) for number in step["uses"]}
    return [
        [number for number, end in last.items() if end == at and number not in outputs]
        for at in range(len(call["steps"]))
    ]


def all_steps(steps: list[Json]) -> Iterator[Json]:
    """Steps, and those of every way to do them."""
    for step in steps:
        yield step
        for option in step.get("options", ()):
            yield from all_steps(option)


def _used(steps: list[Json]) -> set[int]:
    """The numbers of the buffers that steps use."""
    return {number for step in steps for number in step["uses"]}
