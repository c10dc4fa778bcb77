"""Applies the rules to a call, as reported by the candidate's recorder.

Under `kernel`, torch may allocate, fill, view, copy, cast and move; its other operations compute.
They are allowed on tensors smaller than a share of the largest one, the `glue`. Weights may also
be concatenated, stacked and padded: that is preparation. Under `kernel` and `partial` a kernel of
the submission has to run.
"""

import functools
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from kevin_env.frozen import Frozen, printable
from kevin_env.outcome import RulesViolation
from kevin_env.rules.vocabulary import pattern, words

Rules = Literal["kernel", "partial", "open"]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=160)]
_Count = Annotated[int, Field(ge=0, lt=1 << 62)]
_MAX_ENTRIES = 64


class Operation(Frozen):
    """An operation that torch dispatched."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: _Name
    """Such as `aten::mm`."""
    line: Annotated[int, Field(ge=1, lt=1 << 31)] | None
    """The line of the submission that called it, if any."""
    weights: bool
    """Whether all tensor arguments are weights or copies of weights."""
    elements: _Count
    """Of the largest argument or result."""


class Record(Frozen):
    """The record of one call. A claim: the recorder runs in the candidate's process."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    operations: list[Operation] = Field(max_length=_MAX_ENTRIES)
    kernels: list[_Name] = Field(max_length=_MAX_ENTRIES)
    """The submission's kernels that ran: those seen by name, and libraries that it built."""
    symbols: list[_Name] = Field(max_length=_MAX_ENTRIES)
    """Computing functions of vendors, as imported by these libraries."""


@functools.cache
def harmless() -> frozenset[str]:
    """Operations that compute nothing; they are not recorded."""
    return words("recorded_others") | {f"aten::{each}" for each in words("recorded_harmless")}


def recording(mode: Rules) -> dict[str, Any]:
    """The arguments of `kevin_env.candidate.recorder.Recorder`, as JSON."""
    return {
        "operations": mode == "kernel",
        "harmless": sorted(harmless()),
        "namespaces": sorted(words("torch_namespaces")),
        "vendors": pattern("vendor_both", "vendor_library").pattern,
        "libraries": pattern("library_kernels").pattern,
    }


def violation(
    record: Record, mode: Rules, glue: float, largest: int, backward: bool = False
) -> RulesViolation | None:  # fmt: skip
    """The rule that a call broke.

    Args:
        record: Of a call with a correct answer.
        mode: The rules.
        glue: The share of `largest` below which torch may compute under `kernel`.
        largest: Elements of the largest tensor among inputs, weights and outputs.
        backward: Whether a call has a backward pass.
    """
    if mode == "open":
        return None
    computing = [
        each for each in record.operations if _computes(each) and not each.elements < glue * largest
    ]
    if mode == "kernel" and computing:
        first, *others = sorted(computing, key=lambda each: -each.elements)
        message = f"In {called(backward)}, torch computed {_described(first)}"
        message += also([_described(each) for each in others])
        return RulesViolation(kind="torch_compute", message=message, line=first.line)
    if mode == "kernel" and record.symbols:
        text = f"A library that your code built calls `{printable(record.symbols[0])}`"
        message = f"{text}, which computes instead of your kernels."
        return RulesViolation(kind="torch_compute", message=message)
    if not record.kernels:
        return RulesViolation(kind="no_kernel", message="None of your kernels ran.")
    return None


def called(backward: bool) -> str:
    """What a call runs, in words."""
    return "`forward` or `backward`" if backward else "`forward`"


def also(others: list[str]) -> str:
    """The end of a message, with further places, so that one turn can fix them all."""
    named = [*others[:4], *([f"{len(others) - 4} more"] if len(others) > 4 else [])]
    return f"; also {', '.join(named)}." if named else "."


def _computes(operation: Operation) -> bool:
    name = operation.name.removeprefix("aten::")
    if operation.name in harmless() or (operation.weights and name in words("recorded_moves")):
        return False
    return not (name in words("recorded_seeds") and operation.elements <= 1)


def _described(operation: Operation) -> str:
    many = "1 element" if operation.elements == 1 else f"{operation.elements} elements"
    place = f" (line {operation.line})" if operation.line else ""
    return f"`{printable(operation.name)}` on {many}{place}"
