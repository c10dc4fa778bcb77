"""Where a candidate claims that its outputs lie, checked and mapped. The judge reads the memory."""

import math
from typing import Annotated, Any

import torch
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from kevin_env.candidate import cuda, tree
from kevin_env.candidate.region import Region, extent
from kevin_env.judge.handshake.memory import ProcessMemory
from kevin_env.judge.workers.errors import Broken
from kevin_env.outcome import Frozen
from kevin_env.rules.recorded import Record

DTYPES = {
    str(d).removeprefix("torch."): d for d in vars(torch).values() if isinstance(d, torch.dtype)
}
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
MAX_DIMENSIONS = 64
MAX_TENSORS = 1024
Count = Annotated[int, Field(ge=0, lt=1 << 62)]
"""Fits torch's 64-bit sizes, even where no byte depends on it."""
Name = Annotated[str, StringConstraints(max_length=1000)]

_PAIRED = TypeAdapter(Annotated[list[tuple[Name, Name]], Field(max_length=100)])

MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    StopIteration,
    RuntimeError,
)
"""What walking a claimed skeleton may raise."""
_MALFORMED_ANSWER = "its description of the outputs is malformed"


class TensorClaim(Frozen):
    """One output tensor and the memory that it is in."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    device: str = Field(max_length=20)
    layout: str | None = Field(default=None, max_length=40)
    dtype: str = Field(default="", max_length=20)
    shape: list[Count] = Field(default=[], max_length=MAX_DIMENSIONS)
    stride: list[Count] = Field(default=[], max_length=MAX_DIMENSIONS)
    place: Annotated[str, StringConstraints(max_length=128, to_lower=True)] | None = Field(
        default=None, alias="in"
    )
    """`inbox`, `outbox`, an IPC handle of the candidate's allocation, or `memory` on a CPU.

    With `memory`, `offset` is an address. None if it was too large to copy. Handles are lowercased,
    so each has one name.
    """
    size: Count = 0
    offset: Count = 0

    @property
    def span(self) -> int:
        """Bytes from the first to the last element; only for a dtype that exists."""
        return extent(self.shape, self.stride) * DTYPES[self.dtype].itemsize


class CallClaim(Frozen):
    """The outputs of one call."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    skeleton: Any = None
    tensors: list[TensorClaim] = Field(default=[], max_length=MAX_TENSORS)
    unsupported: str | None = Field(default=None, max_length=500)
    cuda_error: str = Field(default="", max_length=200)
    """What the CUDA runtime reported for a launch of the call, or another of its functions, and the
    submission did not check.
    """
    record: Record | None = None
    """What the call did, if it was to be recorded."""


class Output:
    """One claimed output tensor, with its bytes where they are in reach.

    Attributes:
        claim: The claim.
        flat: The bytes from the first to the last element; None if the claim names no memory.
        stride: Of the tensor in those bytes.
    """

    def __init__(
        self, claim: TensorClaim, flat: torch.Tensor | None, stride: list[int] | None = None
    ) -> None:
        self.claim = claim
        self.flat = flat
        self.stride = claim.stride if stride is None else stride

    @property
    def size(self) -> int:
        """Bytes of a copy, without gaps between the elements."""
        if self.flat is None:
            return 0
        return min(
            self.flat.numel(), math.prod(self.claim.shape) * DTYPES[self.claim.dtype].itemsize
        )

    @property
    def has_bytes(self) -> bool:
        """Whether it has memory."""
        return self.flat is not None and self.flat.numel() > 0

    @property
    def bytes(self) -> torch.Tensor:
        """The bytes of an output that names memory."""
        assert self.flat is not None
        return self.flat

    def room(self) -> torch.Tensor | None:
        """Judge memory for a copy of its elements; None if it has no bytes."""
        if self.flat is None:
            return None
        return torch.empty_like(self._elements(), memory_format=torch.contiguous_format)

    def taken(self, room: torch.Tensor | None = None) -> "Output":
        """The same with its elements copied into the judge's memory: `room`, or new memory."""
        room = self.room() if room is None else room
        if room is None:
            return Output(self.claim, None)
        room.copy_(self._elements())
        return Output(
            self.claim,
            room.flatten().view(torch.uint8),
            list(room.stride()) if self._is_sparse else None,
        )

    @property
    def _is_sparse(self) -> bool:
        return self.size < self.bytes.numel()

    def _elements(self) -> torch.Tensor:
        """What is copied, as plain words that every device can copy.

        For a column of a matrix this is the column alone.
        """
        if not self._is_sparse:
            return self.bytes
        return self.bytes.view(_WORDS[DTYPES[self.claim.dtype].itemsize]).as_strided(
            self.claim.shape, self.stride
        )

    def tensor(self) -> torch.Tensor | None:
        """The tensor in those bytes."""
        if self.flat is None:
            return None
        return self.flat.view(DTYPES[self.claim.dtype]).as_strided(self.claim.shape, self.stride)


class Distant(Output):
    """An output in the memory of the candidate's process; nothing is read before it is copied."""

    def __init__(self, claim: TensorClaim, memory: ProcessMemory) -> None:
        super().__init__(claim, None)
        self._memory = memory

    @property
    def size(self) -> int:
        """Bytes of a copy, which includes gaps between the elements."""
        return self.claim.span

    @property
    def has_bytes(self) -> bool:
        """Whether it has memory."""
        return self.size > 0

    def taken(self, room: torch.Tensor | None = None) -> Output:
        """A copy of its present content in new judge memory.

        Raises:
            Broken: if it is not there.
        """
        del room
        return Output(self.claim, self._memory.read(self.claim.offset, self.size))


KEPT_FACTOR, KEPT_SLACK = 2, 1 << 30
"""What stays mapped: this multiple of the most that one pass named, and this many bytes more."""


class Mappings:
    """The candidate's allocations that the judge has mapped, by handle.

    Each is opened once and closed with the candidate. The driver keeps memory alive while it is
    mapped, even if the candidate frees it or dies. A candidate that allocates for each call
    would fill the device, so the least recently named allocations are unmapped.

    Attributes:
        inbox: Of the handshake that they belong to.
    """

    def __init__(
        self,
        inbox: Region,
        outbox: Region,
        device: torch.device,
        memory: ProcessMemory | None = None,
    ) -> None:
        self.inbox = inbox
        self._fixed = {"inbox": inbox, "outbox": outbox}
        self._memory = memory
        self._opened: dict[str, Region] = {}
        """Those named last at the end."""
        self._named: set[str] = set()
        self._most = 0
        self._device = device

    def __len__(self) -> int:
        return len(self._opened)

    @property
    def size(self) -> int:
        """Total size of the mapped allocations."""
        return sum(region.size for region in self._opened.values())

    def resolve(self, claim: TensorClaim) -> Output:
        """Finds the memory of a claimed tensor.

        Raises:
            Broken: if the claim cannot be true.
        """
        if claim.layout is not None or claim.place is None:
            return Output(claim, None)
        if claim.dtype not in DTYPES or len(claim.shape) != len(claim.stride):
            raise Broken("an output's description is malformed")
        if claim.offset % DTYPES[claim.dtype].itemsize:
            raise Broken("an output is not aligned")
        if claim.place == "memory" and self._memory is not None:
            return Distant(claim, self._memory)
        region = self._fixed.get(claim.place) or self._open(claim.place)
        if claim.offset + claim.span > region.size:
            raise Broken("an output does not lie in the memory that it names")
        return Output(claim, region.bytes[claim.offset : claim.offset + claim.span])

    def next_pass(self) -> None:
        """Unmaps old allocations. Call it when the device has done all its work.

        No output that was resolved before may be read afterwards.
        """
        self._most = max(self._most, sum(self._opened[handle].size for handle in self._named))
        self._named.clear()
        left = self.size - KEPT_FACTOR * self._most - KEPT_SLACK
        while left > 0:
            region = self._opened.pop(next(iter(self._opened)))
            left -= region.size
            region.close()

    def close(self) -> None:
        """Unmaps everything."""
        for region in self._opened.values():
            region.close()
        self._opened.clear()
        self._named.clear()

    def _open(self, handle: str) -> Region:
        if self._device.type != "cuda":
            raise Broken("an output names memory that was never lent")
        if handle not in self._opened:
            try:
                pointer = cuda.open_handle(handle)
            except (cuda.CudaError, ValueError) as error:
                raise Broken("an output's memory handle cannot be opened") from error
            _, size = cuda.allocation_of(pointer)
            self._opened[handle] = Region(cuda.as_tensor(pointer, size, self._device))
        self._opened[handle] = self._opened.pop(handle)
        self._named.add(handle)
        return self._opened[handle]


def claims_of(answer: dict[str, Any], count: int) -> list[CallClaim]:
    """The claims of `count` calls, without their skeletons. A clock runs meanwhile.

    Raises:
        Broken: if the answer is malformed.
    """
    try:
        if len(answer["claims"]) != count:  # checked first: a frame has room for millions
            raise Broken(f"it described {len(answer['claims'])} outputs of {count}")
        return [CallClaim.model_validate(claim) for claim in answer["claims"]]
    except (ValidationError, *MALFORMED) as error:
        raise Broken(_MALFORMED_ANSWER) from error


def read_paired(answer: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Weights that a constructed model paired by shape and order. Errors as `claims_of`."""
    try:
        return tuple(_PAIRED.validate_python(answer.get("paired", [])))
    except ValidationError as error:
        raise Broken("its description of its weights is malformed") from error


def require_skeletons(claims: list[CallClaim]) -> None:
    """Checks the skeletons, once the clock has stopped. Errors as `claims_of`."""
    try:
        for claim in claims:
            if claim.unsupported is None:
                _require_skeleton(claim)
    except MALFORMED as error:
        raise Broken(_MALFORMED_ANSWER) from error


def _require_skeleton(claim: CallClaim) -> None:
    """A skeleton must be what taking its tree apart gives: each tensor named once, in order."""
    tensors = [torch.empty(0)] * len(claim.tensors)
    skeleton, named = tree.flatten(tree.unflatten(claim.skeleton, tensors))
    if skeleton != claim.skeleton or len(named) != len(tensors):
        raise ValueError("a skeleton does not match its tensors")
