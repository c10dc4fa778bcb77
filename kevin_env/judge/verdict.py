"""From what a candidate did, and the stage it did it in, to an outcome. The stage decides; text is only shown."""

import signal
from dataclasses import dataclass
from typing import Literal, get_args

from kevin_env.judge.diagnostics import clip, diagnostics, first_line, is_link_error, traceback_of
from kevin_env.judge.trouble import Broken, Ended, Failed, Failure, TimedOut, Trouble
from kevin_env.outcome import CompileError, Outcome, RuntimeFailure

Step = Literal["build", "construct", "call"]
"""What the candidate had been told to do."""

_RUNTIME_KINDS = set(get_args(RuntimeFailure.model_fields["kind"].annotation))


@dataclass
class Place:
    """Where the submission is: what a verdict on a process that fails is put under."""

    step: Step = "build"
    input_set: str | None = None


def verdict(trouble: Trouble, step: Step, folder: str, input_set: str | None = None) -> CompileError | RuntimeFailure:
    """The outcome of a candidate that did not answer as it should.

    Args:
        trouble: What happened.
        step: What it had been told to do.
        folder: The candidate's folder, whose path is left out of messages.
        input_set: What it was being called with.
    """
    match trouble:
        case Failed():
            return _failed(trouble.failure, step, folder, input_set)
        case TimedOut():
            text = f"{trouble.what or _DOING[step]} took longer than {trouble.seconds:g} s"
            return _ended(step, "timeout", text, input_set)
        case Ended(limit=str(limit)):
            return _ended(step, "killed", f"the submission was killed: it used {limit}", input_set)
        case Ended():
            return _ended(step, *_end(trouble.code), input_set)
        case Broken():
            return _ended(step, "protocol", f"the process did not follow the protocol: {trouble}", input_set)
        case _:
            raise AssertionError(f"no verdict for {trouble!r}")


def hoarding(input_set: str | None) -> RuntimeFailure:
    """The outcome of a candidate that holds so much of the device's memory that the judge cannot go on."""
    text = "the submission held so much of the device's memory that its inputs and outputs had no room"
    return RuntimeFailure(kind="out_of_memory", message=text, input_set=input_set)


def may_be_others_doing(outcome: Outcome, shot: bool, limited: bool, beside: bool) -> bool:
    """Whether a submission's end may be the doing of others, or of the machine; then it is judged again, alone.

    It may lack memory that they hold, be ended for a limit that follows from what they left, or be killed because the
    machine's memory is used up. A timeout is its own: it is not counted as time when it waits for a processor
    (`kevin_env.judge.patience`), and a call may take many times what the reference takes.

    Args:
        outcome: Its verdict so far.
        shot: Whether its process was killed by nobody who says so.
        limited: Whether it was killed for a limit.
        beside: Whether others were under way when it began, or when it ended, or hold the device's memory.
    """
    if outcome.category not in ("compile", "runtime"):
        return False
    return shot or (beside and (outcome.kind == "out_of_memory" or limited))


_DOING = {"build": "importing the submission", "construct": "constructing ModelNew", "call": "one call of ModelNew"}


def _failed(failure: Failure, step: Step, folder: str, input_set: str | None) -> CompileError | RuntimeFailure:
    line = failure.frames[-1][0] if failure.frames else None
    text = first_line(failure.message) if failure.kind == "illegal_access" else clip(failure.message, 1_500)
    trace = traceback_of(failure.frames, failure.type, text)
    message = first_line(f"{failure.type}: {failure.message}")
    if failure.kind == "compiler":
        kind = "link" if is_link_error(failure.output) else "compiler"
        found = diagnostics(failure.output, folder)
        return CompileError(kind=kind, message=first_line(found) or message, details=found or trace)
    if failure.kind in ("jit", "link"):
        return CompileError(kind=failure.kind, message=message, details=trace, line=line)
    if step == "build":
        return CompileError(kind="import", message=message, details=trace, line=line)
    kind = failure.kind if failure.kind in _RUNTIME_KINDS else "exception"
    return RuntimeFailure.model_validate(
        {"kind": kind, "message": message, "details": trace, "line": line, "input_set": input_set}
    )


def _ended(step: Step, kind: str, message: str, input_set: str | None) -> CompileError | RuntimeFailure:
    if step == "build" and kind != "protocol":
        return CompileError(kind="timeout" if kind == "timeout" else "killed", message=message)
    return RuntimeFailure.model_validate({"kind": kind, "message": message, "input_set": input_set})


def _end(code: int | None) -> tuple[str, str]:
    if code is None:
        return "killed", "the process was gone"
    if code >= 0:
        return "exit", f"the process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return "signal", f"the process was ended by {name}"
