"""The work of a reference, and times compared with the roofline of their problem on this device.

Torch's dispatcher counts the operations of one call, and the bytes it reads:

- Products (matrix products, convolutions, attention) have the FLOPs that torch's formulas give.
- Every other operator that computes, fused ones included, counts one operation per element of the
  largest tensor that it reads or writes, or `SPECIAL` for a transcendental function.
- Moving or creating elements counts nothing.
- An input or a weight counts with the bytes that operators read of it, in sectors: a slice counts
  as a slice, rows that are looked up as rows, and what is never read not at all.

The judge determines both the work and the ceilings; claims of the submission are not used.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kevin_env.candidate import tree
from kevin_env.judge.handshake.handshake import Drawn
from kevin_env.judge.inputs.reference import Case
from kevin_env.outcome import Correct
from kevin_env.problem import ProblemError
from kevin_env.profile.ceilings import CeilingStore
from kevin_env.roofline import Arithmetic, Roofline, Work, roofline_of

SECTOR = 32
"""Least number of bytes that a GPU reads."""
SPECIAL = 16
"""FLOPs of a transcendental function.

A streaming multiprocessor computes 16 of them per cycle next to 128 multiply-adds (CUDA C++
Programming Guide, "Arithmetic Instructions"); a vectorised polynomial on a CPU has as many.
"""
_ARITHMETIC: dict[torch.dtype, Arithmetic] = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float64: "fp64",
    torch.complex128: "fp64",
}
_MOVING = re.compile(
    "new_.*|empty.*|.*_like|.*copy_?|_copy_from|clone|.*_pad(_nd|[123]d)|fill_?|zero_|zeros|ones|full|scalar_tensor|"
    "arange|one_hot|cat|stack|repeat|roll|flip|embedding|gather|take|index|index_put_?|index_select|.*scatter"
)
"""Names of operators that only move or create elements."""
_TRANSCENDENTAL = re.compile(
    "a?(sin|cos|tan)h?|atan2|exp[2]?|expm1|log(2|10|1p|it|addexp2?|sumexp|cumsumexp|_sigmoid_forward)?|_(log_)?softmax|"
    "erf(c|inv)?|lgamma|digamma|sigmoid|softplus|gelu|silu|mish|elu|celu|selu"
)
"""Names of operators with one transcendental function per element; in place with an underscore."""
_UNREAD = re.compile("new_.*|empty.*|.*_like")
"""Names of operators that use the shape of a tensor and not its elements."""
_OVERWRITING = re.compile("copy_|fill_|zero_")
_LOOKED_UP = re.compile("embedding|gather|index|index_select|take")
"""Names of operators that read no more of their first argument than they return."""


class Light(TorchDispatchMode):
    """A dispatch mode without torch.compile, whose import takes 1.3 s: nothing is compiled."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Counting(Light):
    """Counts what operators do.

    Attributes:
        products: FLOPs of products, by arithmetic.
        elements: Elements that other operators read or wrote, whichever are more; views count
            nothing.
        operations: One or `SPECIAL` per element of the largest tensor of each other operator.
    """

    def __init__(self, precision: str = "ieee") -> None:
        super().__init__()
        self.products: Counter[Arithmetic] = Counter()
        self.elements = 0
        self.operations = 0
        self._precision = precision

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Counts one operator."""
        kwargs = kwargs or {}
        formula = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # a composite operator: its parts are counted
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if formula is not None:
            self.products[self._arithmetic(args)] += formula(*args, **kwargs, out_val=result)
        elif not func.is_view:
            read, written = (
                [t.numel() for t in _tensors(part)] for part in ([args, kwargs], result)
            )
            self.elements += max(sum(read), sum(written))
            self.operations += _operations_of(func._opname) * max((*read, *written), default=0)
        return result

    def _arithmetic(self, args: Any) -> Arithmetic:
        tensor = _tensors(args)[0]
        if tensor.dtype == torch.float32 and self._precision == "tf32" and tensor.is_cuda:
            return "tf32"
        return _ARITHMETIC.get(tensor.dtype, "fp32")


def _operations_of(name: str) -> int:
    """FLOPs per element."""
    if _MOVING.fullmatch(name):
        return 0
    return SPECIAL if _TRANSCENDENTAL.fullmatch(name.removesuffix("_")) else 1


class Reading(Light):
    """Notes which bytes of some tensors on one device operators read; writing does not count."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._read = {
            t.untyped_storage().data_ptr(): _Read(t) for t in tensors if t.layout == torch.strided
        }

    @property
    def bytes(self) -> int:
        """Bytes that were read of all tensors, each counted once."""
        return sum(read.bytes for read in self._read.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Notes what one operator reads."""
        result = func(*args, **(kwargs or {}))
        name: str = func._opname
        if func.is_view or _UNREAD.fullmatch(name):
            return result
        inputs = _tensors([args, kwargs or {}])
        if _OVERWRITING.fullmatch(name):
            inputs = inputs[1:]
        for place, tensor in enumerate(inputs):
            read = (
                self._read.get(tensor.untyped_storage().data_ptr())
                if tensor.layout == torch.strided
                else None
            )
            if read is not None and place == 0 and _LOOKED_UP.fullmatch(name):
                read.look_up(tensor, result)
            elif read is not None:
                read.mark(tensor)
        return result


class _Read:
    """What was read of one block of memory."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._size = tensor.untyped_storage().nbytes()
        self._device = tensor.device
        self._whole = False
        self._looked_up = 0
        self._marks: torch.Tensor | None = None

    @property
    def bytes(self) -> int:
        if self._whole:
            return self._size
        marked = 0
        if self._marks is not None:
            padded = torch.nn.functional.pad(self._marks, (0, -self._size % SECTOR))
            marked = int(padded.view(-1, SECTOR).amax(1).sum()) * SECTOR
        return min(self._size, marked + self._looked_up)

    def look_up(self, tensor: torch.Tensor, result: torch.Tensor) -> None:
        """Marks as many elements as the result has."""
        self._looked_up += min(tensor.nbytes, result.nbytes)

    def mark(self, tensor: torch.Tensor) -> None:
        """Marks all elements of a tensor in this block."""
        self._whole = self._whole or (tensor.is_contiguous() and tensor.nbytes == self._size)
        if self._whole or not tensor.numel():
            return
        if self._marks is None:
            self._marks = torch.zeros(self._size, dtype=torch.uint8, device=self._device)
        unit = tensor.element_size()
        stride = [unit * stride for stride in tensor.stride()]
        self._marks.as_strided(
            [*tensor.shape, unit], [*stride, 1], unit * tensor.storage_offset()
        ).fill_(1)


def find_work(case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor]) -> Work:
    """The work of one call of the reference, with drawn weights, on these inputs.

    Raises:
        ProblemError: if the reference fails while it is observed.
        torch.OutOfMemoryError: if the device has too little memory.
    """
    inputs = [tensor.clone() for tensor in tensors]
    call = case.runner(skeleton, inputs)
    reading = Reading([*inputs, *case.model.parameters(), *case.model.buffers()])
    with Counting(case.precision) as counted, reading:
        output = call()
    return Work(
        read=reading.bytes,
        written=sum(tensor.nbytes for tensor in tree.flatten(output)[1]),
        products=dict(counted.products),
        operations=counted.operations,
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


class Rooflines:
    """The work of problems on one device, each counted once. Use it in the lane.

    Args:
        ceilings: Of the device.
    """

    def __init__(self, ceilings: CeilingStore) -> None:
        self._ceilings = ceilings
        self._work: dict[tuple[str, str], Work | None] = {}

    def added(self, outcome: Correct, key: str, case: Case, draw: Callable[[], Drawn]) -> Correct:
        """The outcome with its roofline, if it has a speedup and the work can be counted.

        `key` is that of the problem, and `draw` draws an input set of the case.
        """
        seconds = outcome.submission_seconds
        if outcome.speedup is None or seconds is None:
            return outcome
        roofline = self._roofline(seconds, key, case, draw)
        return outcome.model_copy(update={"roofline": roofline})

    def _roofline(
        self, seconds: float, key: str, case: Case, draw: Callable[[], Drawn]
    ) -> Roofline | None:
        try:
            if (key, case.name) not in self._work:
                self._work[key, case.name] = _count(case, draw())
            work = self._work[key, case.name]
            if work is None:
                return None
            roofline = roofline_of(work, self._ceilings.of(work), seconds)
            if roofline.above:
                roofline = roofline_of(work, self._ceilings.of(work, again=True), seconds)
            return roofline
        except torch.OutOfMemoryError:  # others may hold the memory
            return None


def _count(case: Case, drawn: Drawn) -> Work | None:
    """The work of a case; None if the reference cannot be observed."""
    try:
        return find_work(case, drawn.skeleton, drawn.image.tensors)
    except ProblemError:
        return None
