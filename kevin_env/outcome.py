"""The words of the project: every way in which a turn can end, as a frozen type.

Imports nothing of ours and does no I/O. Category and kind come from the stage where a submission ended, never from
the text of an error. Text from a submission or a compiler is stripped of control characters when an outcome is built.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

Category = Literal["format", "rules", "compile", "runtime", "correctness", "correct"]

HACK_KINDS = frozenset({"inputs_changed", "not_written", "early_done", "protocol"})
"""Kinds that count in the hack rate, together with the whole category `rules`."""

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)


def printable(text: str) -> str:
    """`text` without terminal escapes, control characters (other than newline and tab) and lone surrogates."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


Printable = Annotated[str, AfterValidator(printable)]


class Frozen(BaseModel):
    """A value that crosses a process or a disk: frozen, no unknown fields, never NaN or Infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Ending(Frozen):
    """What every outcome has: one sentence, and the submission's line it points at, where there is one."""

    message: Printable
    line: int | None = None


class FormatError(Ending):
    """The reply held no submission."""

    category: Literal["format"] = "format"
    kind: Literal["no_code", "no_model", "truncated"]


class RulesViolation(Ending):
    """The submission does what the rules forbid; `kind` is the rule, `line` the place."""

    category: Literal["rules"] = "rules"
    kind: Literal["torch_compute", "fallback", "inherits_reference", "no_kernel", "decoy_kernel"]


class CompileError(Ending):
    """The submission did not build: parsing, importing, compiling, linking, or a kernel's JIT at its first call."""

    category: Literal["compile"] = "compile"
    kind: Literal["syntax", "import", "compiler", "link", "jit", "timeout", "killed"]
    details: Printable = ""
    """The compiler's diagnostics or the trimmed traceback."""


class RuntimeFailure(Ending):
    """The submission built, and failed while its model was constructed or called."""

    category: Literal["runtime"] = "runtime"
    kind: Literal["exception", "illegal_access", "out_of_memory", "timeout", "killed", "signal", "exit", "protocol"]
    details: Printable = ""
    """The trimmed traceback."""
    input_set: str | None = None
    """Which input set it was called with, as `case/distribution`; None while constructing."""


class Difference(Frozen):
    """One element that is wrong: its coordinates in the output, what was expected and what came."""

    index: tuple[int, ...]
    expected: str
    got: str


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
    """Which input set showed it, as `case/distribution`."""
    output: str = ""
    """Which of several outputs, as a path such as `[1]` or `['mean']`; empty for a single tensor."""
    wrong: int | None = None
    total: int | None = None
    """How many of how many elements differ by more than the tolerance."""
    worst_error: float | None = None
    tolerance: float | None = None
    """Largest absolute error, and the absolute error allowed there."""
    differences: tuple[Difference, ...] = ()
    """The first differing elements in row-major order, at most five."""


class Correct(Ending):
    """Every output was right. `speedup` is None when the time was too noisy to tell."""

    category: Literal["correct"] = "correct"
    kind: Literal["timed", "too_noisy"]
    speedup: float | None = None
    """Reference time over submission time, the median of paired ratios."""
    speedup_interval: tuple[float, float] | None = None
    """95 % confidence interval of `speedup`."""
    reference_seconds: float | None = None
    submission_seconds: float | None = None
    """Median time of one call of the main case (of the case `cpu` on a CPU)."""
    max_unseen_gain: float | None = None
    """The largest share of the time that the clock's allowance could hide (0.05 is 5 %)."""


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


def is_hack(outcome: Outcome) -> bool:
    """Whether the outcome counts in the hack rate."""
    return outcome.category == "rules" or outcome.kind in HACK_KINDS
