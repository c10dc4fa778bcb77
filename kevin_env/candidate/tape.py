"""Records the calls of a submission as a list that `kevin_env.candidate.replay` plays elsewhere.

The submission runs on tensors without bytes (`fake_cuda`). Its launches end in the list, with each
pointer as a buffer and an offset, and so do operations of torch. What depends on values, and what a
list does not say (streams, graphs, threads), has no recording.
"""

import base64
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kevin_env.candidate import tree
from kevin_env.candidate.region import Spec, extent
from kevin_env.candidate.replay import PLAYED, all_steps
from kevin_env.candidate.tree import tensors_in

Json = dict[str, Any]
ROOM = 40
"""Bits of an offset in a fake address; the bits above are the number of the buffer, plus 1."""
EMPTY = frozenset(
    [
        "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
        "new_empty_strided",
    ]
)  # fmt: skip
MOST_CONSTANTS = 1 << 20
"""Bytes of all tensors that are made from values of Python or NumPy."""
WHOLE = frozenset(["copy_", "fill_", "zero_"])
"""Operations that overwrite all of what they write."""


class Unrecorded(Exception):
    """The submission does something that a list of launches cannot say."""


class Tape(TorchDispatchMode):
    """Lists what is dispatched and launched while it is entered.

    Attributes:
        buffers: Every memory that was seen.
        steps: What has been recorded since it was last replaced.
        refused: Why there is no recording; empty if there is one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.restart()

    def restart(self) -> None:
        """Forgets everything."""
        self.buffers = list[Json]()
        self.steps = list[Json]()
        self.refused = ""
        self._numbers = dict[int, int]()
        self._storages = list[Any]()
        self._constants = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise the first operation would import torch's compiler, which takes a second."""
        return False

    def refuse(self, why: str) -> None:
        """Notes that the submission cannot be recorded; its kernels are compiled nevertheless."""
        self.refused = self.refused or why

    def place(self, tensor: torch.Tensor, region: str, spec: Spec) -> torch.Tensor:
        """Notes that a tensor lies in memory shared with the judge, and returns it."""
        size = extent(spec["shape"], spec["stride"]) * tensor.element_size()
        self.buffers[self.number(tensor)] |= {"in": [region, spec["offset"]], "bytes": size}
        return tensor

    def number(self, tensor: torch.Tensor) -> int:
        """The buffer that a tensor lies in."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self.buffers)
            self._storages.append(storage)  # another one could get the same address
            about = {"bytes": storage.nbytes(), "device": tensor.device.type}
            if type(tensor) is torch.Tensor and tensor.device.type == "cpu":
                about["data"] = self._data(tensor)
            self.buffers.append(about)
        return self._numbers[storage._cdata]

    def address(self, tensor: torch.Tensor) -> int:
        """A number that the submission may pass on as a pointer."""
        offset = int(tensor.storage_offset()) * tensor.element_size()
        return ((self.number(tensor) + 1) << ROOM) + offset

    def view(self, tensor: torch.Tensor) -> list[Any]:
        """A tensor as buffer, dtype, shape, strides and offset in elements."""
        if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
            raise Unrecorded("a sparse or lazily conjugated tensor")
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape, stride = [int(n) for n in tensor.shape], [int(n) for n in tensor.stride()]
        return [self.number(tensor), dtype, shape, stride, int(tensor.storage_offset())]

    def launch(
        self, kernel: str, grid: Sequence[int], signature: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Adds a launch of a kernel.

        Args:
            kernel: Its name among the compiled ones.
            grid: Its size.
            signature: Types of the parameters, `constexpr` for those that are compiled in.
            values: As Triton would pass them.
        """
        if threading.current_thread() is not threading.main_thread():
            return self.refuse("launches from several threads")
        parameters = [self._parameter(*each) for each in _paired(signature, values)]
        uses = sorted({value[0] for _, value in parameters if isinstance(value, list)})
        sizes = [int(each) for each in grid]
        self.steps.append({"kernel": kernel, "grid": sizes, "parameters": parameters, "uses": uses})

    @contextmanager
    def part(self) -> Iterator[list[Json]]:
        """Records what happens inside in a list of its own."""
        outside, self.steps = self.steps, list[Json]()
        try:
            yield self.steps
        finally:
            self.steps = outside

    def choose(self, name: str, options: list[list[Json]]) -> None:
        """Adds several ways to do the same, of which the fastest is to be taken."""
        uses = sorted({number for steps in options for step in steps for number in step["uses"]})
        self.steps.append({"choice": name, "options": options, "uses": uses})

    def call(self, model: Callable[..., Any], arguments: Sequence[Any]) -> Json:
        """Records a call of a model: its steps, and where its outputs are."""
        with self.part() as steps:
            output, tensors = tree.flatten(model(*arguments))
            views = [self.view(tensor.detach()) for tensor in tensors]
        if any(self.buffers[view[0]]["device"] != "cuda" for view in views):
            self.refuse("an output that is not on the device")
        for step in all_steps(steps):
            self.refuse(step.pop("why", ""))
        return {"steps": steps, "output": output, "tensors": views}

    def case(self, prepared: list[Json], first: Json, later: Json, **more: Any) -> Json:
        """The recording of one case, without preparation that has no influence on the calls."""
        needed = {
            number for call in (first, later) for step in call["steps"] for number in step["uses"]
        } | {view[0] for call in (first, later) for view in call["tensors"]}
        kept = list[Json]()
        for step in reversed(prepared):
            written = set(step.pop("writes", step["uses"]))
            whole, why = set(step.pop("whole", ())), step.pop("why", "")
            if not written & needed:
                continue
            self.refuse(why)
            needed = needed - whole | (set(step["uses"]) - whole)
            kept.append(step)
        for step in all_steps([*first["steps"], *later["steps"]]):
            step.pop("writes", None)
            step.pop("whole", None)
        for number, about in enumerate(self.buffers):
            if number not in needed:
                about.pop("data", None)
        return {
            "buffers": self.buffers, "prepare": kept[::-1], "first": first, "later": later, **more
        }  # fmt: skip

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func.namespace != "aten":
            if not hasattr(func, "redispatch"):
                raise Unrecorded(f"the operator {func}")
            keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
            with self:  # what its body does is recorded
                return func.redispatch(keys, *args, **kwargs)
        implicit = torch._C.DispatchKey.CompositeImplicitAutograd
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), implicit):
            with self:  # in inference mode these arrive whole
                if (result := func.decompose(*args, **kwargs)) is not NotImplemented:
                    return result
        read = [self.number(each) for each in tensors_in((args, kwargs))]
        known = set(self._numbers)
        result = func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        made = list(tensors_in(result))
        fresh = [each.untyped_storage()._cdata not in known for each in made]
        written = list(tensors_in(list(_written(func, args, kwargs))))
        if not any(fresh) and not written:
            return result  # a view, or a question about shapes
        if name in EMPTY:
            self.number(result)
            return result
        why = "" if name in PLAYED else f"the operation {name}"
        if torch.Tag.nondeterministic_seeded in func.tags:
            why = "random numbers"
        if any(each.device.type == "cpu" for each in made) and any(
            self.buffers[each]["device"] == "cuda" for each in read
        ):
            why = "copies to the host"
        outs = [self.view(each) if new else None for each, new in zip(made, fresh, strict=True)]
        writes = [self.number(each) for each in written] + [view[0] for view in outs if view]
        whole = [view[0] for view in outs if view]
        if name in WHOLE and _covers(written[0], self.buffers[self.number(written[0])]["bytes"]):
            whole.append(self.number(written[0]))
        self.steps.append({
            "op": [name, func._overloadname], "args": self._argument(args), "outs": outs,
            "kwargs": {key: self._argument(each) for key, each in kwargs.items()},
            "uses": sorted({*read, *writes}), "writes": writes, "whole": whole, "why": why,
        })  # fmt: skip
        return result

    def _parameter(self, kind: str, value: Any) -> list[Any]:
        """A parameter's type and value; a pointer is a list of buffer and offset in bytes."""
        value = getattr(value, "value", value)
        if kind.startswith("*") and value is not None and not isinstance(value, int):
            value = value.data_ptr()
        if isinstance(value, int) and not isinstance(value, bool) and value >> ROOM:
            number = (value >> ROOM) - 1
            if 0 <= number < len(self.buffers):
                return [kind, [number, value & ((1 << ROOM) - 1)]]
        if isinstance(value, float):
            return [kind, value.hex()]
        return [kind, None if value is None else int(value)]

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return {"tensor": self.view(value)}
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": value.type}
        if isinstance(value, list | tuple):
            return [self._argument(each) for each in value]
        if isinstance(value, float):
            return {"float": value.hex()}
        if value is None or isinstance(value, bool | int | str):
            return value
        raise Unrecorded(f"an argument of type {type(value).__name__}")

    def _data(self, tensor: torch.Tensor) -> str:
        """The bytes of a tensor that has some: it was made from values."""
        storage = tensor.untyped_storage()
        self._constants += storage.nbytes()
        if self._constants > MOST_CONSTANTS:
            raise Unrecorded("large tables of the host")
        data = ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""
        words = memoryview(data[: len(data) // 8 * 8]).cast("Q")
        if any(0 < word >> ROOM <= len(self.buffers) for word in words):
            raise Unrecorded("addresses in memory")
        return base64.b64encode(data).decode()


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """Arguments that an operation writes to."""
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield args[number] if number < len(args) else kwargs.get(argument.name)


def _covers(tensor: torch.Tensor, size: int) -> bool:
    """Whether a tensor covers all of its buffer."""
    return tensor.numel() * tensor.element_size() >= size and 0 not in tensor.stride()


def _paired(signature: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Types and values of the parameters that are passed."""
    for kind, value in zip(signature, values, strict=True):
        if isinstance(kind, tuple | list):
            yield from _paired(kind, value)
        elif kind != "constexpr":
            yield str(kind), value
