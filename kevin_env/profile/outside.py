"""Nsight Compute and compute-sanitizer, run on a submission as a separate program."""

import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.inputs.cases import properties_key, timed_case
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.outcome import (
    Dimensions,
    Incorrect,
    NcuDigest,
    Outcome,
    RuntimeFailure,
    SanitizerDigest,
    SanitizerTool,
)
from kevin_env.problem import Problem
from kevin_env.profile import ncu, ncu_session
from kevin_env.profile.kernels import shorten
from kevin_env.profile.ncu_session import CALLS, parts_of, read_tables, run_parts
from kevin_env.profile.target import DIFFERENT, Step, Target
from kevin_env.profile.tools import TRUSTED, Ran, Runner, ToolName, find_tool, refusal, run

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
CHECK_SECONDS = 20.0
KEEPERS = ("triton", "cpp_extension")
"""What keeps compiled code, so that a program finds what a copy of the candidate left."""
TRIES = 3
"""How often a tool is tried on a trusted program, each time without metrics that are missing."""
_NAMES: dict[ToolName, str] = {"ncu": "Nsight Compute", "compute-sanitizer": "compute-sanitizer"}


@dataclass(frozen=True)
class Outside:
    """The tools that examine one submission from outside its process.

    Attributes:
        notes: Receives sentences.
    """

    bench: Bench
    problem: Problem
    code: str
    options: Options
    notes: list[str]

    def ncu(self) -> NcuDigest | None:
        """The digest of one call on the timed case's own inputs."""
        tool = self._tool("ncu")
        if tool is None:
            return None
        with self._target(ncu_session.take(self.bench, tool, self.options)) as target:
            self._write(
                target, timed_case(self.problem, self.bench.device), "own"
            )  # while torch is imported
            if not self._compiled(target):
                return None
            digest = self._counted(target, tool)
        return self._refused("ncu", tool, digest) if isinstance(digest, str) else digest

    def _counted(self, target: Target, tool: str) -> NcuDigest | str:
        """The digest of a program that holds at `ready`, or why there is none."""
        ran = run_parts(target, parts_of(self.options, self.bench.lease))
        if isinstance(ran, str):
            return ran
        ncu_session.prepare(
            self.bench, tool, self.options
        )  # beside the tables, so that it is there for the next turn
        return read_tables(target, tool, ncu_session.report_of(target), ran.output)

    def sanitizer(self, outcome: Outcome) -> SanitizerDigest | None:
        """What compute-sanitizer finds on inputs like those on which the submission failed."""
        cause, tool = cause_of(outcome), self._tool("compute-sanitizer")
        if tool is None or cause is None:
            return None
        case, _, distribution = (getattr(outcome, "input_set", None) or "").partition("/")
        worker = self.bench.candidates.take_for_tools()
        with self._target(Target(worker, self.options, self.bench.info.processors)) as target:
            self._write(
                target, case or timed_case(self.problem, self.bench.device), distribution or "own"
            )
            code = self._rehearsed(target, "compare" if cause == "values" else "call")
            if cause == "values" and code != DIFFERENT:
                return None  # always wrong in the same way: no race, and no uninitialised memory
            with self.bench.lease.shared():
                tools = TOOLS["illegal_access" if cause == "illegal_access" else "changing"]
                digest = run_sanitizer(
                    target, tool, tools, str(target.worker.folder), target.command
                )
        if isinstance(digest, str):
            return self._refused("compute-sanitizer", tool, digest)
        return digest

    def _tool(self, name: ToolName) -> str | None:
        """Where a tool is; else notes why it cannot be used."""
        if self.bench.device.type != "cuda":
            self.notes.append(f"{_NAMES[name]} looks into kernels on a GPU, and this is a CPU")
            return None
        if self.bench.profiler.refusals.get(name):
            self.notes.append(self.bench.profiler.refusals[name])
            return None
        tool = find_tool(name)
        if tool is None:
            self.notes.append(f"{_NAMES[name]} ({name}) is not installed here")
        return tool

    @contextmanager
    def _target(self, target: Target) -> Iterator[Target]:
        """For the submission as a program; the candidate and its files go afterwards."""
        try:
            yield target
        finally:
            self.bench.candidates.retire(target.worker)

    def _write(self, target: Target, case: str, distribution: str) -> None:
        """The submission and fresh inputs of a case, as files."""
        target.write_code(self.code)
        with self.bench.lease.shared():
            seed = seed_from(secrets.token_hex(16), case)
            nature = self.bench.problems.properties.get(
                properties_key(self.problem, case, self.options.inputs)
            )
            admitted = nature.distributions if nature else ()
            target.write(Case(self.problem, case, self.bench.device), distribution, seed, admitted)
            torch.cuda.empty_cache()  # what the judge keeps for itself, the program may lack

    def _compiled(self, target: Target) -> bool:
        """Compiles what the program needs, where that is kept; else notes that it does not load.

        Needs no lease. A killed compiler may have left a lock for which the program would wait.
        """
        if not any(name in self.code for name in KEEPERS):
            return True
        if target.rehearse(self.options.build_timeout, "compile") == 0:
            return True
        self.notes.append(
            "the submission did not load as a separate program, so there is nothing to profile"
        )
        return False

    def _rehearsed(self, target: Target, step: Step = "call") -> int | None:
        """The program's exit code. It compiles without a lease, so timing does not wait."""
        code = target.rehearse(self.options.build_timeout, "load")
        if code != 0:
            return code
        with self.bench.lease.shared():
            return target.rehearse(CALLS * self.options.limits().first, step)

    def _refused(self, name: ToolName, tool: str, why: str) -> None:
        """Notes why a tool gave no result. One that does not work here at all is not tried again.

        Its output may be the submission's. So before it is believed, the tool is tried on a trusted
        program.
        """
        if name not in self.bench.profiler.refusals:
            known = self._tried(name, tool)
            self.bench.profiler.refusals[name] = (
                f"{_NAMES[name]} cannot be used here: {known}" if known else ""
            )
        self.notes.append(
            self.bench.profiler.refusals[name] or f"{_NAMES[name]} reported nothing: {why}"
        )

    def _tried(self, name: ToolName, tool: str) -> str:
        """Why a tool fails on a trusted program; empty if it works, if without some metrics."""
        target = Target(self.bench.candidates.take_for_tools(), self.options, 1)
        report = str(target.worker.folder / "report")
        ours = [sys.executable, "-P", "-c", TRUSTED, str(self.bench.device)]
        try:
            with self.bench.lease.shared():
                for _ in range(TRIES):
                    known = self.bench.profiler.missing_metrics
                    profile = ncu.command(tool, report, ours, known)
                    check = sanitizer_command(tool, "memcheck", report, ours)
                    ran = run(target, profile if name == "ncu" else check, CHECK_SECONDS, {})
                    missing = ncu.missing_in(ran.output) - known
                    if not missing:
                        return refusal(ran.output) or refusal(target.read(report))
                    self.bench.profiler.missing_metrics = known | missing
                return ""
        except CandidateError:
            return ""
        finally:
            self.bench.candidates.retire(target.worker)


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
        ran = run(runner, command, seconds, ENVIRONMENT)
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
        else "its report is not whole"
    )


def cause_of(outcome: Outcome) -> str | None:
    """What a sanitizer may explain: `illegal_access`, `nondeterministic`, `values`; else None."""
    if isinstance(outcome, RuntimeFailure) and outcome.kind == "illegal_access":
        return "illegal_access"
    if not isinstance(outcome, Incorrect):
        return None
    if outcome.kind in ("values", "not_finite"):
        return "values"
    return "nondeterministic" if outcome.kind == "nondeterministic" else None
