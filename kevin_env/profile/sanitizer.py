"""compute-sanitizer: its command, its report, and which outcomes it may explain."""

import re
import time
from collections.abc import Iterable

from kevin_env.outcome import (
    HELD_OUT,
    Dimensions,
    Incorrect,
    Outcome,
    RuntimeFailure,
    SanitizerDigest,
    SanitizerTool,
)
from kevin_env.profile.kernels import shorten
from kevin_env.profile.target import DIFFERENT
from kevin_env.profile.tools import Ran, Runner, refusal

TOOLS: dict[str, tuple[SanitizerTool, ...]] = {
    "illegal_access": ("memcheck",),
    "changing": ("racecheck", "memcheck", "initcheck"),
}
"""Which tools look for the cause of what was seen, in order, until one finds an error."""
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""torch's caching allocator returns parts of larger allocations: nothing is out of bounds."""
_LONGEST_LINE = 2000
_LINES = 200
_MARK = "========="
_SUMMARY = re.compile(
    r"(?:ERROR SUMMARY:|RACECHECK SUMMARY:)\s*(?P<count>\d{1,9})\s+(?:errors?|hazards?)"
)
_ERROR = re.compile(
    r"Invalid __\w+__ |Uninitialized __\w+__ |Misaligned |Illegal |Out-of-range "
    r"|Barrier error|Stack overflow|Hardware .{0,80} error"
    r"|(?:Error: |Warning: )?(?:Potential )?(?:Race reported|RAW hazard|WAR hazard|WAW hazard)"
)
_PLAIN = re.compile(
    r"(?:0x[0-9a-f]{1,16} in )?(?P<kernel>.+?)(?:\+0x[0-9a-f]{1,16})?"
    r"(?: in (?P<file>[^:\s][^:]*):(?P<line>\d{1,9}))?"
    r"(?: \[\d+ hazards?\])?$"
)
_LINE_FIRST = re.compile(
    r"0x[0-9a-f]{1,16} in (?P<file>[^:\s][^:]*):(?P<line>\d{1,9}):(?P<kernel>.+)$"
)
"""The place of an error, as recent versions and those before 2023 write it."""
_PLACE = re.compile(r"by thread \((?P<thread>[\d, ]{5,40})\) in block \((?P<block>[\d, ]{5,40})\)")
_SIZE = re.compile(r"of size (?P<size>\d{1,9})")
_DETAILS = re.compile(r"(?:Address|Access to|and is|and (?:Read|Write) access)\b")


def sanitizer_command(tool: str, name: SanitizerTool, log: str, target: Iterable[str]) -> list[str]:
    """The command that runs another, `target`, under one of compute-sanitizer's tools.

    The report goes to the file `log`, apart from what the submission prints.
    """
    return [
        tool, "--tool", name, "--target-processes", "application-only", "--log-file", log,
        "--print-limit", "20", "--show-backtrace", "no", "--launch-timeout", "30", *target,
    ]  # fmt: skip


def read_report(text: str, name: SanitizerTool) -> SanitizerDigest | None:
    """The first error of a report; without one if it is clean; None if it is incomplete."""
    lines = [
        line[:_LONGEST_LINE].removeprefix(_MARK).strip()
        for line in text.splitlines()
        if line.startswith(_MARK)
    ]
    summary = next((match for line in reversed(lines) if (match := _SUMMARY.match(line))), None)
    errors = [number for number, line in enumerate(lines) if _ERROR.match(line)]
    if not errors:
        clean = summary is not None and int(summary["count"]) == 0
        return SanitizerDigest(tool=name) if clean else None
    count = int(summary["count"]) if summary else len(errors)
    return _digest(name, lines[errors[0] : errors[0] + _LINES], max(count, 1))


def _digest(name: SanitizerTool, lines: list[str], count: int) -> SanitizerDigest:
    """Of the lines from an error on; they belong to it up to an empty one or the next error."""
    own = [lines[0]]
    for line in lines[1:]:
        if not line or _ERROR.match(line) or _SUMMARY.match(line):
            break
        own.append(line)
    at = next((match for line in own if (match := _where(line))), None)
    place = next((match for line in own if (match := _PLACE.search(line))), None)
    size = _SIZE.search(own[0])
    return SanitizerDigest(
        tool=name,
        error=own[0].partition(" at ")[0][:200],
        details=" ".join(line for line in own[1:] if _DETAILS.match(line))[:300],
        kernel=shorten(at["kernel"]) if at else "",
        file=((at["file"] or "") if at else "").rpartition("/")[2][:80],
        line=int(at["line"]) if at and at["line"] else None,
        size=int(size["size"]) if size else None,
        thread=_dimensions(place["thread"]) if place else None,
        block=_dimensions(place["block"]) if place else None,
        count=count,
    )


def _where(line: str) -> "re.Match[str] | None":
    """Kernel, file and line that a line of a report names."""
    race = re.match(r"(?:Error: |Warning: )?Race reported between \w+ access at ", line)
    if race is None and not line.startswith("at "):
        return None
    rest = line[race.end() if race else 3 :]
    return _LINE_FIRST.match(rest) or _PLAIN.match(rest)


def _dimensions(text: str) -> Dimensions | None:
    numbers = [int(part) for part in text.split(",") if part.strip().isdigit()]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


SANITIZER_SECONDS = 40.0
"""For all of its tools together."""


def run_sanitizer(
    runner: Runner,
    tool: str,
    names: tuple[SanitizerTool, ...],
    folder: str,
    target: list[str],
) -> SanitizerDigest | str:
    """The first error that one of the tools finds, or a digest without one; else the reason."""
    end = time.monotonic() + SANITIZER_SECONDS
    clean: SanitizerDigest | None = None
    why = ""
    for name in names:
        log = f"{folder}/{name}.log"
        command, seconds = (
            sanitizer_command(tool, name, log, target),
            max(end - time.monotonic(), 1.0),
        )
        ran = runner.run(command, seconds, ENVIRONMENT)
        text = runner.read(log)
        digest = read_report(text, name)
        if digest is not None and digest.error:
            return digest
        if ran.code in (0, DIFFERENT):
            clean = clean or digest
        why = why or _why_nothing(ran, text)
    return clean or why


def _why_nothing(ran: Ran, report: str) -> str:
    """Why a sanitizer tool gave no result; one that ended early was not fully examined."""
    if ran.late:
        return f"it took longer than {SANITIZER_SECONDS:g} s"
    said = refusal(report) or refusal(ran.output)
    return said or (
        f"the program under it ended with exit code {ran.code}"
        if ran.code
        else "its report is truncated"
    )


def cause_of(outcome: Outcome) -> str | None:
    """What a sanitizer may explain: `illegal_access`, `nondeterministic`, `values`; else None.

    Nothing of a held-out case.
    """
    if getattr(outcome, "input_set", None) == HELD_OUT:
        return None
    if isinstance(outcome, RuntimeFailure) and outcome.kind == "illegal_access":
        return "illegal_access"
    if not isinstance(outcome, Incorrect):
        return None
    if outcome.kind in ("values", "not_finite"):
        return "values"
    return "nondeterministic" if outcome.kind == "nondeterministic" else None
