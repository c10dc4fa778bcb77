"""NVIDIA's compute-sanitizer: how it is started, and the first error of its report."""

import re
from collections.abc import Iterable

from kevin_env.judge.probe.names import shorten
from kevin_env.profile import Dimensions, SanitizerDigest, SanitizerTool

TOOLS: dict[str, tuple[SanitizerTool, ...]] = {
    "illegal_access": ("memcheck",),
    "changing": ("racecheck", "memcheck", "initcheck"),
}
"""Which tools look for the cause of what was seen, in order, until one finds an error."""
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""torch hands out parts of large allocations, in which nothing is out of bounds."""
_LONGEST_LINE = 2000
_LINES = 200
_MARK = "========="
_SUMMARY = re.compile(
    r"(?:ERROR SUMMARY:|RACECHECK SUMMARY:)\s*(?P<count>\d{1,9})\s+(?:errors?|hazards?)"
)
_ERROR = re.compile(
    r"Invalid __\w+__ |Uninitialized __\w+__ |Misaligned |Illegal |Out-of-range |Barrier error|Stack overflow"
    r"|Hardware .{0,80} error|(?:Error: |Warning: )?(?:Potential )?(?:Race reported|RAW hazard|WAR hazard|WAW hazard)"
)
_PLAIN = re.compile(
    r"(?:0x[0-9a-f]{1,16} in )?(?P<kernel>.+?)(?:\+0x[0-9a-f]{1,16})?(?: in (?P<file>[^:\s][^:]*):(?P<line>\d{1,9}))?"
    r"(?: \[\d+ hazards?\])?$"
)
_LINE_FIRST = re.compile(
    r"0x[0-9a-f]{1,16} in (?P<file>[^:\s][^:]*):(?P<line>\d{1,9}):(?P<kernel>.+)$"
)
"""Where it happened, as recent versions and those before 2023 write it."""
_PLACE = re.compile(r"by thread \((?P<thread>[\d, ]{5,40})\) in block \((?P<block>[\d, ]{5,40})\)")
_SIZE = re.compile(r"of size (?P<size>\d{1,9})")
_DETAILS = re.compile(r"(?:Address|Access to|and is|and (?:Read|Write) access)\b")


def command(tool: str, name: SanitizerTool, log: str, target: Iterable[str]) -> list[str]:
    """The command that runs the target under one of compute-sanitizer's tools.

    Args:
        tool: Its path.
        name: Which one.
        log: Where the report goes, apart from what the submission prints.
        target: The command that runs the submission.
    """
    return [
        tool, "--tool", name, "--target-processes", "application-only", "--log-file", log,
        "--print-limit", "20", "--show-backtrace", "no", "--launch-timeout", "30", *target,
    ]  # fmt: skip


def read_report(text: str, name: SanitizerTool) -> SanitizerDigest | None:
    """The first error of a report; a digest without an error when there is none; None when it is no
    whole report.
    """
    lines = [
        line[:_LONGEST_LINE].removeprefix(_MARK).strip()
        for line in text.splitlines()
        if line.startswith(_MARK)
    ]
    summary = next((found for line in reversed(lines) if (found := _SUMMARY.match(line))), None)
    errors = [number for number, line in enumerate(lines) if _ERROR.match(line)]
    if not errors:
        return (
            SanitizerDigest(tool=name)
            if summary is not None and int(summary["count"]) == 0
            else None
        )
    count = int(summary["count"]) if summary else len(errors)
    return _digest(name, lines[errors[0] : errors[0] + _LINES], max(count, 1))


def _digest(name: SanitizerTool, lines: list[str], count: int) -> SanitizerDigest:
    """Of the lines from an error on; they belong to it up to an empty one or the next error."""
    own = [lines[0]]
    for line in lines[1:]:
        if not line or _ERROR.match(line) or _SUMMARY.match(line):
            break
        own.append(line)
    at = next((found for line in own if (found := _where(line))), None)
    place = next((found for line in own if (found := _PLACE.search(line))), None)
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
