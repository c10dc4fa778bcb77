"""Every way in which a turn can end, and profiles of submissions, as frozen types.

Does no I/O. Category and kind come from the stage where a submission ended, never from the text of
an error. Text from a submission or a compiler is stripped of control characters when an outcome is
built.

Profiles are made on request, after the verdict. Each of their values has a source. `outside`: a
tool in a separate process, from the device's counters. `inside`: code in the submission's own
process, which the submission could have changed, or files that it wrote. `inside` values are
advice: they are marked wherever they are shown and never enter a score.
"""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kevin_env.frozen import Frozen as Frozen
from kevin_env.frozen import Printable as Printable
from kevin_env.frozen import printable as printable
from kevin_env.frozen import visible as visible
from kevin_env.roofline import Roofline

Category = Literal["format", "rules", "compile", "runtime", "correctness", "correct"]

NOISY = 0.25
"""The time is noisy if the speedup's interval is wider than this on either side, relative to it."""
HACK_KINDS = frozenset({"inputs_changed", "not_written", "early_done", "protocol"})
"""Kinds that count in the hack rate, together with the whole category `rules`."""


class Ending(Frozen):
    """What all outcomes have in common: a sentence and, if known, a line of the submission."""

    message: Printable
    line: int | None = None


class FormatError(Ending):
    """The reply held no submission."""

    category: Literal["format"] = "format"
    kind: Literal["no_code", "no_model", "no_forward", "truncated"]


class RulesViolation(Ending):
    """The submission does what the rules forbid; `kind` is the rule, `line` the place."""

    category: Literal["rules"] = "rules"
    kind: Literal["torch_compute", "fallback", "inherits_reference", "no_kernel", "dispatcher"]
    case: str | None = None
    """The input case in which a call broke the rule; None if the rule was checked in the source."""


class CompileError(Ending):
    """The submission failed to parse, import, compile, link, or JIT at its first call."""

    category: Literal["compile"] = "compile"
    kind: Literal["syntax", "import", "compiler", "link", "jit", "timeout", "killed"]
    details: Printable = ""
    """The compiler's diagnostics or the trimmed traceback."""


class RuntimeFailure(Ending):
    """The submission built, and failed while its model was constructed or called."""

    category: Literal["runtime"] = "runtime"
    kind: Literal[
        "exception",
        "illegal_access",
        "out_of_memory",
        "timeout",
        "killed",
        "signal",
        "exit",
        "protocol",
    ]
    details: Printable = ""
    """The trimmed traceback."""
    input_set: str | None = None
    """Which input set it was called with, as `case/distribution`; None while constructing."""
    passed: tuple[str, ...] = ()
    """Other input sets that passed before."""


class Difference(Frozen):
    """One wrong element: its coordinates in the output, the expected and the actual value."""

    index: tuple[int, ...]
    expected: str
    got: str


class Span(Frozen):
    """Indices `range(start, stop, step)` of `size` in `dim`, or in the flat output (None)."""

    dim: int | None
    start: int
    stop: int
    step: int = 1
    size: int


class Pattern(Frozen, extra="ignore"):
    """What all wrong elements have in common. Fields of older lines are ignored."""

    where: tuple[Span, ...] = ()
    """The region that contains all of them, without dimensions that it spans completely; only
    older lines have none.
    """


class Incorrect(Ending):
    """The submission ran and its output is not the reference's."""

    category: Literal["correctness"] = "correctness"
    kind: Literal[
        "arity",
        "type",
        "shape",
        "dtype",
        "device",
        "values",
        "not_finite",
        "nondeterministic",
        "inputs_changed",
        "not_written",
        "early_done",
    ]
    input_set: str
    """The input set that failed, as `case/distribution`."""
    output: str = ""
    """The path of the output, such as `[1]` or `['mean']`; empty for a single tensor."""
    wrong: int | None = None
    total: int | None = None
    """Number of elements that differ by more than the tolerance, and number of elements."""
    worst_error: float | None = None
    tolerance: float | None = None
    """Largest absolute error, and the absolute error allowed there."""
    differences: tuple[Difference, ...] = ()
    """The first differing elements in row-major order, at most five."""
    pattern: Pattern | None = None
    paired: tuple[tuple[Printable, Printable], ...] = ()
    """Pairs of a reference parameter and the parameter or buffer that it was loaded into by shape
    and order, which can be the cause of wrong values.
    """
    passed: tuple[str, ...] = ()
    """Other input sets that passed before."""


class Threads(Frozen):
    """Average number of CPU threads that a call kept busy."""

    busy: float
    """Processor time over wall time."""
    of: int
    """Number of threads available."""


class Correct(Ending, extra="ignore"):
    """Every output was correct. Fields of older records that have gone are ignored.

    `too_noisy`: the interval of the speedup is wider than `NOISY`. What counts of a speedup follows
    from the interval, not from the kind (`kevin_env.score.at_bound`). `speedup` is None only in
    older and foreign records.
    """

    category: Literal["correct"] = "correct"
    kind: Literal["timed", "too_noisy"]
    speedup: float | None = None
    """Reference time over submission time, the median of paired ratios."""
    speedup_interval: tuple[float, float] | None = None
    """95 % confidence interval of `speedup` for further judgements of the same code on this
    machine, which covers variation between calls and between judgements
    (`kevin_env.judge.timing.estimates`).
    """
    reference_seconds: float | None = None
    submission_seconds: float | None = None
    """Median time of one call of the main case (of the case `cpu` on a CPU)."""
    coverage: float | None = None
    """Share of device time in the submission's own kernels; None if not measured from outside."""
    queued: bool = False
    """Whether all kernels of a call were launched before it began, so that `submission_seconds`
    excludes host time. False on a CPU, and if `forward` synchronizes.
    """
    roofline: Roofline | None = None
    """The time against the limits of the device; None without a speedup."""
    threads: Threads | None = None
    """CPU only, for calls that are long enough to measure."""


Outcome = Annotated[
    FormatError | RulesViolation | CompileError | RuntimeFailure | Incorrect | Correct,
    Field(discriminator="category"),
]

OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
"""Reads an outcome from JSON or from a dict."""

OUTCOME_TYPES: tuple[type[Ending], ...] = (
    FormatError,
    RulesViolation,
    CompileError,
    RuntimeFailure,
    Incorrect,
    Correct,
)


HELD_OUT = "held-out"
"""In place of the case or input set of an outcome: a held-out case, whose name is not shown."""


def withheld(outcome: Outcome, hidden: Collection[str]) -> Outcome:
    """A failure in a held-out case as it may be told: category, kind, and no word of others.

    A submission knows the shapes, and could write them into a message, a value or a line number.

    Args:
        outcome: The failure.
        hidden: Names of all held-out cases.
    """
    passed = [
        each for each in getattr(outcome, "passed", ()) if each.partition("/")[0] not in hidden
    ]
    about: dict[str, object] = {"input_set": HELD_OUT, "passed": passed}
    if isinstance(outcome, RulesViolation):
        about = {"case": HELD_OUT}
    elif isinstance(outcome, CompileError):
        about = {}
    message = "its shapes and values are not shown"
    names = {"category": outcome.category, "kind": outcome.kind, "message": message}
    return OUTCOME.validate_python(names | about)


def speedup_of(outcome: Outcome) -> float | None:
    """The measured speedup, or None for an outcome that has none."""
    return outcome.speedup if isinstance(outcome, Correct) else None


def input_set_of(outcome: Outcome) -> str | None:
    """The failing input set, as `case/distribution`, or `HELD_OUT`."""
    return outcome.input_set if isinstance(outcome, Incorrect | RuntimeFailure) else None


def interval_of(outcome: Outcome) -> tuple[float, float] | None:
    """The 95 % confidence interval of the speedup, or None for an outcome that has none."""
    return outcome.speedup_interval if isinstance(outcome, Correct) else None


def held_roofline(outcome: Outcome) -> Roofline | None:
    """The time against the device's roofline, or None for an outcome that has none."""
    return outcome.roofline if isinstance(outcome, Correct) else None


def is_hack(outcome: Outcome) -> bool:
    """Whether the outcome counts in the hack rate."""
    return outcome.category == "rules" or outcome.kind in HACK_KINDS


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


class Profile(Frozen):
    """The findings that were requested and available."""

    kernels: KernelProfile | None = None
    ncu: NcuDigest | None = None
    sanitizer: SanitizerDigest | None = None
    notes: tuple[Printable, ...] = ()
    """What could not be measured, and why; one sentence each."""

    @property
    def holds_findings(self) -> bool:
        """Whether it has anything other than notes."""
        return bool(self.kernels or self.ncu or self.sanitizer)

    def without(self, notes: tuple[str, ...]) -> "Profile":
        """The profile without these notes."""
        kept = tuple(each for each in self.notes if each not in notes)
        return self.model_copy(update={"notes": kept})
