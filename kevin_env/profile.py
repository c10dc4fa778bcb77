"""Profiles of submissions, on request and after the verdict, as frozen values.

Every value has a source. `outside`: a tool in a separate process, from the device's counters.
`inside`: code in the submission's own process, which the submission could have changed, or files
that it wrote. `inside` values are advice: they are marked wherever they are shown and never enter a
score.
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
    """All launches of one kernel in a call."""

    name: Printable
    """Shortened: without return type, arguments and template arguments."""
    launches: int
    """In one call."""
    seconds: float
    """Of one call."""
    own: bool
    """Whether the submission defines it; False for kernels of PyTorch and vendor libraries, copies,
    fills.
    """
    grid: Dimensions | None = None
    block: Dimensions | None = None
    registers: int | None = None
    """Per thread."""
    shared_memory: int | None = None
    """Bytes per block, static and dynamic."""
    local_memory: int | None = None
    """Bytes per thread: spilled registers, and arrays that do not fit into registers."""


class Operator(Frozen):
    """One operator of PyTorch that a call dispatches."""

    name: Printable
    """Such as `aten::empty_strided`."""
    calls: int
    """In one call."""
    seconds: float | None = None
    """Host time in one call."""


class KernelProfile(Frozen):
    """Time of one call by kernel and operator, from torch's profiler."""

    source: Source = "inside"
    seconds: float
    """Wall time of one call under the profiler, which slows it down."""
    kernels: tuple[Kernel, ...] = ()
    """By time. None on a CPU, where kernels called through ctypes cannot be observed."""
    operators: tuple[Operator, ...] = ()
    """The PyTorch operators that a call dispatches, by time."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of device time in the submission's own kernels; on a CPU, of time outside of operators.
    """
    idle: float | None = None
    """Seconds of one call in which the device waited for the next launch."""
    cores: float | None = None
    """Average number of busy cores; on a CPU only."""


class Metric(Frozen):
    """One figure of Nsight Compute."""

    name: str
    """Our name, such as `DRAM throughput`."""
    value: float
    unit: Literal["fraction", "bytes", "seconds", "count"]
    """A fraction is relative to the sustained peak, unless the name says otherwise."""


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
    """Nsight Compute's findings on the kernel that takes most of the time."""

    source: Source = "outside"
    kernel: Printable
    own: bool
    seconds: float
    """Of all kernels of one call, with caches flushed before each."""
    share: float
    """Time of this kernel within these seconds."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of these seconds in the submission's own kernels; None if a launch was missed."""
    bound: Bound
    """The nearer limit; `latency` if it is far from both."""
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
    """Details of the address, or of the other access."""
    kernel: Printable = ""
    file: Printable = ""
    line: int | None = None
    size: int | None = None
    """Bytes of the access."""
    thread: Dimensions | None = None
    block: Dimensions | None = None
    count: int = 0
    """Number of errors."""


class CodeFacts(Frozen):
    """Findings in the machine code of one kernel."""

    source: Source = "inside"
    kernel: Printable
    registers: int | None = None
    local_memory: int | None = None
    """Bytes per thread."""
    shared_memory: int | None = None
    """Static bytes per block."""
    load_bytes: tuple[int, ...] = ()
    store_bytes: tuple[int, ...] = ()
    """Bytes that a thread loads from or stores to global memory per instruction, all widths."""
    tensor_cores: tuple[str, ...] = ()
    """Tensor core instructions in use, such as `HGMMA`."""
    local_accesses: int = 0
    """Instructions that load from or store to local memory."""
    bulk_copies: bool = False
    """Whether whole tiles are copied by the bulk copy engine (TMA)."""


class Profile(Frozen):
    """The findings that were requested and available."""

    kernels: KernelProfile | None = None
    ncu: NcuDigest | None = None
    sanitizer: SanitizerDigest | None = None
    code: tuple[CodeFacts, ...] = ()
    notes: tuple[Printable, ...] = ()
    """What could not be measured, and why; one sentence each."""

    @property
    def holds_findings(self) -> bool:
        """Whether it has anything other than notes."""
        return bool(self.kernels or self.ncu or self.sanitizer or self.code)

    def without(self, notes: tuple[str, ...]) -> "Profile":
        """The profile without these notes."""
        return self.model_copy(
            update={"notes": tuple(each for each in self.notes if each not in notes)}
        )
