"""From what a candidate did, and the stage it did it in, to an outcome. The stage decides; text is
only shown.
"""

import signal
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kevin_env.judge.diagnostics import (
    clip,
    diagnostics,
    first_line,
    is_link_error,
    traceback_of,
    without_paths,
)
from kevin_env.judge.workers.errors import Broken, Ended, Failed, Failure, TimedOut, Trouble
from kevin_env.outcome import CompileError, Outcome, RuntimeFailure

Step = Literal["build", "construct", "call"]
"""What the candidate had been told to do."""

_RUNTIME_KINDS = set(get_args(RuntimeFailure.model_fields["kind"].annotation))


@dataclass(frozen=True)
class Place:
    """Where the submission is: what a verdict on a process that fails is put under."""

    step: Step = "build"
    input_set: str | None = None
    passed: tuple[str, ...] = ()
    """Other input sets that were right before."""


def verdict(
    trouble: Trouble, place: Place, folder: str, line: int | None = None
) -> CompileError | RuntimeFailure:
    """The outcome of a candidate that did not answer as it should.

    Args:
        trouble: What happened.
        place: What it had been told to do.
        folder: The candidate's folder, whose path is left out of messages.
        line: Of the submission, at which it claims that its process crashed or hung.
    """
    match trouble:
        case Failed():
            return _failed(trouble.failure, place, folder)
        case TimedOut():
            text = f"{trouble.what or _DOING[place.step]} took longer than {trouble.seconds:g} s"
            stopped = "" if line is None else f" (stopped at line {line})"
            return _ended(place, "timeout", text + stopped, line)
        case Ended(limit=str(limit)):
            return _ended(place, "killed", f"the submission was killed: it used {limit}")
        case Ended(code=int(code)) if code < 0:
            called = "" if line is None else f" in native code called from line {line}"
            return _ended(place, "signal", _signal(-code) + called, line)
        case Ended(code=None):
            return _ended(place, "killed", "the process disappeared")
        case Ended():
            return _ended(place, "exit", f"the process ended with exit code {trouble.code}")
        case Broken():
            return _ended(place, "protocol", f"the process did not follow the protocol: {trouble}")
        case _:
            raise AssertionError(f"no verdict for {trouble!r}")


def hoarding(input_set: str | None) -> RuntimeFailure:
    """The outcome of a candidate that holds so much of the device's memory that the judge cannot go
    on.
    """
    text = "the submission used so much device memory that its inputs and outputs did not fit"
    return RuntimeFailure(kind="out_of_memory", message=text, input_set=input_set)


def may_be_others_doing(outcome: Outcome, shot: bool, limited: bool, beside: bool) -> bool:
    """Whether a submission's end may be the doing of others, or of the machine; then it is judged
    again, alone.

    It may lack memory that they hold, be ended for a limit that follows from what they left, or be
    killed because the machine's memory is used up. A timeout is its own: it is not counted as time
    when it waits for a processor (`kevin_env.judge.workers.patience`), and a call may take many times what
    the reference takes.

    Args:
        outcome: Its verdict so far.
        shot: Whether its process was killed by nobody who says so.
        limited: Whether it was killed for a limit.
        beside: Whether others were under way when it began, or when it ended, or hold the device's
            memory.
    """
    if outcome.category not in ("compile", "runtime"):
        return False
    return shot or (beside and (outcome.kind == "out_of_memory" or limited))


_DOING = {
    "build": "importing the submission",
    "construct": "constructing ModelNew",
    "call": "one call of ModelNew",
}


def _failed(failure: Failure, place: Place, folder: str) -> CompileError | RuntimeFailure:
    line = failure.frames[-1][0] if failure.frames else None
    said = without_paths(failure.message, folder)
    text = first_line(said) if failure.kind == "illegal_access" else clip(said, 1_500)
    trace = traceback_of(failure.frames, failure.type, text)
    message = first_line(f"{failure.type}: {said}")
    if failure.kind == "compiler":
        kind = "link" if is_link_error(failure.output) else "compiler"
        found = diagnostics(failure.output, folder)
        return CompileError(kind=kind, message=first_line(found) or message, details=found or trace)
    if failure.kind in ("jit", "link"):
        return CompileError(kind=failure.kind, message=message, details=trace, line=line)
    if place.step == "build":
        return CompileError(kind="import", message=message, details=trace, line=line)
    kind = failure.kind if failure.kind in _RUNTIME_KINDS else "exception"
    return RuntimeFailure.model_validate(
        {"kind": kind, "message": message, "details": trace, "line": line, **_sets(place)}
    )


def _ended(
    place: Place, kind: str, message: str, line: int | None = None
) -> CompileError | RuntimeFailure:
    if place.step == "build" and kind != "protocol":
        return CompileError(
            kind="timeout" if kind == "timeout" else "killed", message=message, line=line
        )
    return RuntimeFailure.model_validate(
        {"kind": kind, "message": message, "line": line, **_sets(place)}
    )


def _sets(place: Place) -> dict[str, Any]:
    return {"input_set": place.input_set, "passed": place.passed}


def _signal(number: int) -> str:
    """Such as `Segmentation fault (SIGSEGV)`."""
    try:
        return f"{signal.strsignal(number)} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        return f"The process was ended by signal {number}"
