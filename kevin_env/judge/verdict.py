"""The outcome of a failed submission, from its failure and the step in which it happened.

Compiler output and tracebacks are shortened for display; text never decides an outcome.
"""

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kevin_env.judge.workers.errors import Broken, CandidateError, Ended, Failed, Failure, TimedOut
from kevin_env.outcome import CompileError, Correct, Outcome, RuntimeFailure

Step = Literal["build", "construct", "call"]
"""The last order sent to the candidate."""
_RUNTIME_KINDS = set(get_args(RuntimeFailure.model_fields["kind"].annotation))


@dataclass(frozen=True)
class Place:
    """The current order of a submission, with the input sets that passed before."""

    step: Step = "build"
    input_set: str | None = None
    passed: tuple[str, ...] = ()
    case: str | None = None
    """The case that a model is constructed for, if there are several."""
    first: bool = False
    """Whether it is the first call in a case."""
    code: str = ""
    """What is built: compilers quote its lines."""


def verdict(
    error: CandidateError, place: Place, folder: str, line: int | None = None, access: str = ""
) -> CompileError | RuntimeFailure:
    """The outcome of a candidate that did not answer as it should.

    Args:
        error: What happened.
        place: Its last order.
        folder: The candidate's folder, which is removed from messages.
        line: The submission's line at which its process claims to have crashed or hung.
        access: What it claims to have accessed out of a tensor's bounds, in bytes.
    """
    match error:
        case Failed():
            return _failed(error.failure, place, folder)
        case TimedOut():
            doing = _FIRST_CALL if place.first and not error.asleep else _DOING[place.step]
            used = "used no processor time for" if error.asleep else "took longer than"
            text = f"{error.what or doing} {used} {error.seconds:g} s"
            stopped = "" if line is None else f" (stopped at line {line})"
            causes = _SLEEPS if error.asleep else _HANGS if place.step == "call" else ""
            return _ended(place, "timeout", text + stopped + causes, line)
        case Ended(limit=str(limit)):
            return _ended(place, "killed", f"the submission was killed: it used {limit}")
        case Ended(code=int(code)) if code < 0:
            called = "" if line is None else f" in native code called from line {line}"
            causes = _ABORTS if -code == signal.SIGABRT else ""
            causes = f": index out of bounds, {access} bytes of a tensor" if access else causes
            return _ended(place, "signal", _signal(-code) + called + causes, line)
        case Ended(code=None):
            return _ended(place, "killed", "the process disappeared")
        case Ended():
            return _ended(place, "exit", f"the process ended with exit code {error.code}")
        case Broken():
            return _ended(place, "protocol", f"the process did not follow the protocol: {error}")
        case _:
            raise AssertionError(f"no verdict for {error!r}")


def hoarding(input_set: str | None) -> RuntimeFailure:
    """The outcome of a candidate that holds so much device memory that the judge cannot go on."""
    text = "the submission used so much device memory that its inputs and outputs did not fit"
    return RuntimeFailure(kind="out_of_memory", message=text, input_set=input_set)


_HANGS = ": slow code, an endless loop, a deadlock, or memory corrupted by an out-of-bounds write"
_SLEEPS = ": a deadlock, a wait that never ends, or memory corrupted by an out-of-bounds write"
_ABORTS = ": a failed assertion, or memory corrupted by an out-of-bounds write"
_DOING = {
    "build": "importing the submission",
    "construct": "constructing ModelNew",
    "call": "one call of ModelNew",
}
_FIRST_CALL = "the first call of ModelNew, including compilation,"


def _failed(failure: Failure, place: Place, folder: str) -> CompileError | RuntimeFailure:
    line = failure.frames[-1][0] if failure.frames else None
    full = without_paths(failure.message, folder)
    text = first_line(full) if failure.kind == "illegal_access" else clip(full, 1_500)
    trace = traceback_of(failure.frames, failure.type, text)
    message = first_line(f"{failure.type}: {_reason(full)}")
    if failure.kind == "compiler":
        kind = "link" if is_link_error(failure.output) else "compiler"
        text = diagnostics(failure.output, folder)
        return CompileError(
            kind=kind, message=first_line(text) or message, details=text or trace,
            line=next(iter(quoted_lines(text, place.code)), None),
        )  # fmt: skip
    if failure.kind in ("jit", "link"):
        return CompileError(kind=failure.kind, message=message, details=trace, line=line)
    if place.step == "build":
        return CompileError(kind="import", message=message, details=trace, line=line)
    kind = failure.kind if failure.kind in _RUNTIME_KINDS else "exception"
    message = f"in case `{place.case}`: {message}" if place.case else message
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


LIMIT = 4_000
SHORTEST_QUOTE = 8
"""Characters of a quoted line that says which one it is."""
MAX_DIAGNOSTICS = 12
_GCC = re.compile(
    r"^(?P<file>[^\s:()]+):(?P<line>\d+):(?:\d+:)? (?P<level>fatal error|error|warning|note): "
)
_NVCC = re.compile(
    r"^(?P<file>[^\s:()]+)\((?P<line>\d+)\): (?P<level>error|warning|catastrophic error)"
)
_LINKER = re.compile(
    r"([Uu]ndefined reference to|undefined symbol|cannot find -l|multiple definition of"
    r"|ld returned|^nvlink error)"
)
_PTXAS = re.compile(r"^ptxas (?P<level>error|fatal)\s*:")
_TRITON_PLACE = re.compile(r"at \d+:\d+:\n")
_NUMBERED = re.compile(r"^\s*\d+ \| ")
"""Before a line that g++ quotes."""
_MARKER = re.compile(r"[\s|~]*\^[\s~^]*")
_INSTANTIATION = re.compile(r"\s+(detected during|instantiation of) ?")
_NOISE = re.compile(r"^(\[\d+/\d+\] |ninja: |FAILED: |In file included from|\s+from )")
_PART = r"[^\s:;,'\"`()\[\]<>/]+"
_DIRECTORIES = re.compile(
    rf"(?<![\w.:/])/(?:{_PART}/+){{0,40}}(?={_PART}\.(?:c|cc|cpp|cu|cuh|h|hpp|inc|inl|ipp|o|py|so)\b)"
)
"""The directories, at most 40, of a source, header or library with an absolute path."""


def diagnostics(output: str, folder: str) -> str:
    """The compiler's errors with their source lines, without command lines and chains of includes.

    An error in a template is followed by the place where the code was instantiated. Lines of files
    outside the folder are not quoted.

    Args:
        output: What ninja, nvcc, g++ or ld printed.
        folder: The candidate's folder; paths in it are shortened to the file's name.
    """
    lines = [line.rstrip() for line in output.splitlines()]
    kept: list[str] = []
    count = 0
    for i, line in enumerate(lines):
        if _starts_error(line) and count < MAX_DIAGNOSTICS:
            count += 1
            quoted = [] if _is_elsewhere(line, folder) else _context(lines[i + 1 : i + 9])
            kept += [line, *quoted, *_origin(lines[:i])]
    text = (
        "\n".join(kept)
        if kept
        else "\n".join(line for line in lines if line and not _is_command(line))
    )
    return clip(without_paths(text, folder))


def quoted_lines(text: str, code: str) -> tuple[int, ...]:
    """Lines of the submission (from 1) that a compiler quotes, each the only one with its text.

    The compiler itself counts from the beginning of a string in the submission.
    """
    numbers: dict[str, list[int]] = {}
    for number, line in enumerate(code.split("\n"), start=1):
        numbers.setdefault(line.strip(), []).append(number)
    quotes = (_NUMBERED.sub("", line).strip() for line in text.split("\n"))
    found = (numbers.get(quote, []) for quote in quotes if len(quote) >= SHORTEST_QUOTE)
    return tuple(dict.fromkeys(each[0] for each in found if len(each) == 1))


def without_paths(text: str, folder: str) -> str:
    """The text with paths of the candidate's files, sources and libraries cut to their names."""
    return _DIRECTORIES.sub("", re.sub(re.escape(folder) + r"(?:/(?:[^\s:('\"/]+/)*|\b)", "", text))


def is_link_error(output: str) -> bool:
    """Whether the linker complained and no compiler did."""
    lines = output.splitlines()
    compiled = not any(
        _severe(_GCC.match(line) or _NVCC.match(line) or _PTXAS.match(line)) for line in lines
    )
    return compiled and any(_LINKER.search(line) for line in lines)


def traceback_of(frames: Iterable[tuple[int, str, str]], kind: str, message: str) -> str:
    """A traceback of the submission's own frames only, as Python prints one."""
    lines = [f"  line {line}, in {name}\n    {source.strip()}" for line, name, source in frames]
    head = ["Traceback (the submission's own frames):"] if lines else []
    return clip("\n".join([*head, *lines, f"{kind}: {message}".strip()]))


def clip(text: str, limit: int = LIMIT) -> str:
    """The text, shortened in the middle if it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _reason(message: str) -> str:
    """An error's message, without the place and the source that an error of Triton begins with."""
    if not _TRITON_PLACE.match(message):
        return message
    lines = message.split("\n")
    marks = [number for number, line in enumerate(lines) if line.strip() == "^"]
    reason = "\n".join(lines[marks[0] + 1 :] if marks else ())
    return reason.strip() or message


def first_line(text: str) -> str:
    """The first line that is not empty, shortened."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]


def _starts_error(line: str) -> bool:
    return _severe(_GCC.match(line) or _NVCC.match(line) or _PTXAS.match(line)) or bool(
        _LINKER.search(line)
    )


def _is_elsewhere(line: str, folder: str) -> bool:
    """Whether a diagnostic is about a file outside the candidate's folder."""
    match = _GCC.match(line) or _NVCC.match(line)
    return (
        match is not None and match["file"].startswith("/") and not match["file"].startswith(folder)
    )


def _severe(match: "re.Match[str] | None") -> bool:
    return match is not None and ("error" in match["level"] or match["level"] == "fatal")


def _origin(before: list[str]) -> list[str]:
    """The line above an error in which g++ shows where the code was instantiated."""
    return [line for line in before[-1:] if line.endswith("required from here")]


def _context(following: list[str]) -> list[str]:
    """The source line and its marker, which follow an error; nvcc then lists instantiations."""
    context: list[str] = []
    marked = False
    for line in following:
        starts = _GCC.match(line) or _NVCC.match(line) or _starts_error(line)
        if not line or starts or _is_command(line) or (marked and not _INSTANTIATION.match(line)):
            break
        context.append(line)
        marked = marked or bool(_MARKER.fullmatch(line))
    return context


def _is_command(line: str) -> bool:
    return (
        bool(_NOISE.match(line)) or (line.startswith("/") and " -" in line) or " -DTORCH_" in line
    )


FlagName = Literal["interpreted", "above_roofline", "record_contradicted", "profile_differs"]
FLAGS: dict[str, str] = {
    "interpreted": "no GPU: Triton ran in its interpreter, and its speed means nothing",
    "above_roofline": (
        "faster than the reference's own work at this device's ceilings; better algebra may "
        "explain it"
    ),
    "record_contradicted": (
        "no torch compute was recorded, but a profile shows little time in the submission's kernels"
    ),
    "profile_differs": (
        "a profiled call spent longer on the device than a timed call took in total, so its "
        "coverage is not reported"
    ),
}
"""What a flag means, by its `FlagName`."""


def flag(name: FlagName, text: str) -> str:
    """A flag as it is recorded: `name: sentence`."""
    return f"{name}: {text}"


def flags_of(outcome: Outcome, interpreted: bool) -> tuple[str, ...]:
    """Flags for a time that is Triton's interpreter's, or above the roofline."""
    if interpreted and isinstance(outcome, Correct):
        return (flag("interpreted", FLAGS["interpreted"]),)
    held = outcome.roofline if isinstance(outcome, Correct) else None
    if held is None or not held.above:
        return ()
    text = (
        f"{held.fraction:.3g} times as fast as the reference's own work at this device's ceilings"
    )
    return (flag("above_roofline", text),)


def flag_name(flag: str) -> str:
    """The name of a recorded flag; empty if there is no such flag, as in a file of others."""
    name = flag.partition(": ")[0]
    return name if name in FLAGS else ""
