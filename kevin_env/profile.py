"""What profiler, sanitizer and compiler tell of a submission, as frozen values: asked for, and told
after the verdict.

Every value says where it was taken. `outside`: by a tool in a process of its own, from the device's
counters. `inside`: by code in the submission's own process, which it may have rewritten, or from
files that it wrote. What is `inside` is advice: it is marked so wherever it is shown and never
enters a score.
"""

from typing import Literal

from pydantic import Field

from kevin_env.frozen import Frozen, Printable

Source = Literal["outside", "inside"]
ProfileKind = Literal["none", "kernels", "ncu"]
Bound = Literal["memory", "compute", "latency"]
SanitizerTool = Literal["memcheck", "racecheck", "initcheck"]
Dimensions = tuple[int, int, int]


class Kernel(Frozen):
    """One kernel that a call launches, all its launches together."""

    name: Printable
    """Shortened: without return type, arguments and template arguments."""
    launches: int
    """In one call."""
    seconds: float
    """Of one call."""
    own: bool
    """Whether it is the submission's; False for those of PyTorch and the vendor's libraries, copies
    and fills.
    """
    grid: Dimensions | None = None
    block: Dimensions | None = None
    registers: int | None = None
    """Of a thread."""
    shared_memory: int | None = None
    """Bytes of a block, static and dynamic."""
    local_memory: int | None = None
    """Bytes of a thread: spilled registers, and arrays that found no room in registers."""


class Operator(Frozen):
    """One operator of PyTorch that a call dispatches."""

    name: Printable
    """Such as `aten::empty_strided`."""
    calls: int
    """In one call."""
    seconds: float | None = None
    """Of the host in one call."""


class KernelProfile(Frozen):
    """Where the time of one call goes, as torch's own profiler tells it."""

    source: Source = "inside"
    seconds: float
    """Wall time of one call under the profiler, which slows it down."""
    kernels: tuple[Kernel, ...] = ()
    """By their time. None on a CPU, where nothing sees kernels that are called through ctypes."""
    operators: tuple[Operator, ...] = ()
    """What a call dispatches, by its time: evidence of what PyTorch still does in it."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of the device's time in the submission's own kernels; on a CPU, of the time outside
    torch's operators.
    """
    idle: float | None = None
    """Seconds of one call in which the device waited for the next launch."""
    cores: float | None = None
    """How many cores were busy on average; on a CPU only."""


class Metric(Frozen):
    """One figure of Nsight Compute."""

    name: str
    """Ours, such as `DRAM throughput`."""
    value: float
    unit: Literal["fraction", "bytes", "seconds", "count"]
    """A fraction is of what the device sustains at most, unless the name says otherwise."""


class Stall(Frozen):
    """Why warps wait, with its share of all samples in which they do."""

    reason: Printable
    share: float


class HotLine(Frozen):
    """A line of source and its share of all samples of the kernel."""

    line: int
    file: Printable = ""
    text: Printable = ""
    share: float


class NcuDigest(Frozen):
    """What Nsight Compute tells of the kernel that takes most of a call's time."""

    source: Source = "outside"
    kernel: Printable
    own: bool
    seconds: float
    """Of all kernels of one call, with caches flushed before each."""
    share: float
    """Of this kernel in these seconds."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of these seconds in the submission's own kernels; None when not every launch was seen.
    """
    bound: Bound
    """What it is nearer to the limit of; `latency` when it is far from both."""
    metrics: tuple[Metric, ...] = ()
    stalls: tuple[Stall, ...] = ()
    lines: tuple[HotLine, ...] = ()


class SanitizerDigest(Frozen):
    """The first error that compute-sanitizer found; without one, `error` is empty."""

    source: Source = "outside"
    tool: SanitizerTool
    error: Printable = ""
    """Such as `Invalid __global__ read of size 4 bytes`."""
    details: Printable = ""
    """What it says of the address, or of the other access."""
    kernel: Printable = ""
    file: Printable = ""
    line: int | None = None
    size: int | None = None
    """Bytes of the access."""
    thread: Dimensions | None = None
    block: Dimensions | None = None
    count: int = 0
    """How many errors there were."""


class CodeFacts(Frozen):
    """What the machine code of one of the submission's kernels shows."""

    source: Source = "inside"
    kernel: Printable
    registers: int | None = None
    local_memory: int | None = None
    """Bytes of a thread."""
    shared_memory: int | None = None
    """Bytes of a block, static."""
    load_bytes: tuple[int, ...] = ()
    store_bytes: tuple[int, ...] = ()
    """How many bytes a thread loads from or stores to global memory in one instruction: every width
    there is.
    """
    tensor_cores: tuple[str, ...] = ()
    """Which of their instructions are used, such as `HGMMA`."""
    local_accesses: int = 0
    """Instructions that load from or store to local memory."""
    bulk_copies: bool = False
    """Whether whole tiles are copied by the bulk copy engine (TMA)."""


class Profile(Frozen):
    """All that was asked for and could be had."""

    kernels: KernelProfile | None = None
    ncu: NcuDigest | None = None
    sanitizer: SanitizerDigest | None = None
    code: tuple[CodeFacts, ...] = ()
    notes: tuple[Printable, ...] = ()
    """What could not be had, and why; one sentence each."""

    @property
    def holds_findings(self) -> bool:
        """Whether there is more than notes."""
        return bool(self.kernels or self.ncu or self.sanitizer or self.code)

    def without(self, notes: tuple[str, ...]) -> "Profile":
        """The same without notes that were told before."""
        return self.model_copy(
            update={"notes": tuple(each for each in self.notes if each not in notes)}
        )
