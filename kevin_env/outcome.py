"""Every way in which a turn can end, as a frozen type.

Does no I/O. Category and kind come from the stage where a submission ended, never from the text of
an error. Text from a submission or a compiler is stripped of control characters when an outcome is
built.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kevin_env.frozen import Frozen as Frozen
from kevin_env.frozen import Printable as Printable
from kevin_env.frozen import printable as printable
from kevin_env.frozen import visible as visible
from kevin_env.roofline import Roofline

Category = Literal["format", "rules", "compile", "runtime", "correctness", "correct"]

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
    """Pairs of a reference parameter and the buffer that it was loaded into by shape, which can be
    the cause of wrong values.
    """
    passed: tuple[str, ...] = ()
    """Other input sets that passed before."""


class Threads(Frozen):
    """Average number of CPU threads that a call kept busy."""

    busy: float
    """Processor time over wall time."""
    of: int
    """Number of threads available."""


class Correct(Ending):
    """Every output was correct.

    `too_noisy`: the interval of the speedup is wide, so its lower end counts
    (`kevin_env.score.at_bound`). `speedup` is None only in older and foreign records.
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
    max_unseen_gain: float | None = None
    """The largest share of the time that the clock's allowance could hide (0.05 is 5 %)."""
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


def speedup_of(outcome: Outcome) -> float | None:
    """The measured speedup, or None for an outcome that has none."""
    return outcome.speedup if isinstance(outcome, Correct) else None


def interval_of(outcome: Outcome) -> tuple[float, float] | None:
    """The 95 % confidence interval of the speedup, or None for an outcome that has none."""
    return outcome.speedup_interval if isinstance(outcome, Correct) else None


def held_roofline(outcome: Outcome) -> Roofline | None:
    """The time against the device's roofline, or None for an outcome that has none."""
    return outcome.roofline if isinstance(outcome, Correct) else None


def is_hack(outcome: Outcome) -> bool:
    """Whether the outcome counts in the hack rate."""
    return outcome.category == "rules" or outcome.kind in HACK_KINDS
