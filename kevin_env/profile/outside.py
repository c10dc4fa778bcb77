"""Nsight Compute and compute-sanitizer, run on a submission as a separate program."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.inputs.cases import timed_case
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import ended_on_error
from kevin_env.outcome import NcuDigest, Outcome, SanitizerDigest
from kevin_env.problem import Problem
from kevin_env.profile import ncu
from kevin_env.profile.sanitizer import TOOLS, cause_of, run_sanitizer, sanitizer_command
from kevin_env.profile.target import DIFFERENT, Step, Target
from kevin_env.profile.tools import TRUSTED, ToolName, find_tool, refusal

NCU_SECONDS = 60.0
"""For the program under Nsight Compute: importing torch takes 2 to 3 s on an H200, a launch 2 to 4.

Only a call that hangs or is replayed forever holds the device for all of it, once.
"""
CALLS = 4
"""Construction and calls of a rehearsal; each may take as long as a call in a verdict."""
CHECK_SECONDS = 20.0
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
        with self._target(timed_case(self.problem, self.bench.device), "own") as target:
            if self._rehearsed(target, "call") != 0:
                self.notes.append("the submission does not run as a separate program")
                return None
            report = str(target.worker.folder / "report")
            missing = self.bench.profiler.missing_metrics
            command = ncu.command(tool, report, target.command, missing)
            # counters of the memory count everyone's traffic
            with self.bench.lane.entered(), ended_on_error(target.worker):
                ran = target.run(command, NCU_SECONDS, {})
                if ran.late:  # with whatever left the session that was killed
                    target.worker.close()
            late = f"it took longer than {NCU_SECONDS:g} s"
            found = late if ran.late else ncu.read_tables(target, tool, report, ran.output)
        return self._nothing("ncu", found) if isinstance(found, str) else found

    def sanitizer(self, outcome: Outcome) -> SanitizerDigest | None:
        """What compute-sanitizer finds on inputs like those on which the submission failed."""
        cause, tool = cause_of(outcome), self._tool("compute-sanitizer")
        if tool is None or cause is None:
            return None
        case, _, distribution = (getattr(outcome, "input_set", None) or "").partition("/")
        case = case or timed_case(self.problem, self.bench.device)
        with self._target(case, distribution or "own") as target:
            code = self._rehearsed(target, "compare" if cause == "values" else "call")
            if cause == "values" and code != DIFFERENT:
                return None  # always wrong in the same way: no race, and no uninitialised memory
            with self.bench.lane.entered():
                tools = TOOLS["illegal_access" if cause == "illegal_access" else "changing"]
                folder = str(target.worker.folder)
                found = run_sanitizer(target, tool, tools, folder, target.command)
        return self._nothing("compute-sanitizer", found) if isinstance(found, str) else found

    def _nothing(self, name: ToolName, why: str) -> None:
        """Notes that a tool gave no result. What it printed may be the submission's words."""
        self.notes.append(f"{_NAMES[name]} reported nothing: {why}")

    def _tool(self, name: ToolName) -> str | None:
        """Where a tool is; else notes why it cannot be used."""
        if self.bench.device.type != "cuda":
            self.notes.append(f"{_NAMES[name]} needs a GPU, and this is a CPU")
            return None
        refusals, tool = self.bench.profiler.refusals, find_tool(name)
        if name not in refusals:
            why = self._tried(name, tool) if tool else f"{name} is not installed"
            refusals[name] = f"{_NAMES[name]} cannot be used here: {why}" if why else ""
        if refusals[name]:
            self.notes.append(refusals[name])
            return None
        return tool

    def _tried(self, name: ToolName, tool: str) -> str:
        """Why a tool fails on a trusted program; empty if it works, if without some metrics."""
        target = Target(self.bench.candidates.take_for_tools(), self.options, 1)
        report = str(target.worker.folder / "report")
        ours = [sys.executable, "-P", "-c", TRUSTED, str(self.bench.device)]
        try:
            with self.bench.lane.entered():
                for _ in range(TRIES):
                    known = self.bench.profiler.missing_metrics
                    profile = ncu.command(tool, report, ours, known)
                    check = sanitizer_command(tool, "memcheck", report, ours)
                    ran = target.run(profile if name == "ncu" else check, CHECK_SECONDS, {})
                    missing = ncu.missing_in(ran.output) - known
                    if not missing:
                        return refusal(ran.output) or refusal(target.read(report))
                    self.bench.profiler.missing_metrics = known | missing
                return ""
        except CandidateError:
            return ""
        finally:
            self.bench.candidates.retire(target.worker)

    @contextmanager
    def _target(self, case: str, distribution: str) -> Iterator[Target]:
        """The submission as a program, with fresh inputs of a case; its files go afterwards."""
        worker = self.bench.candidates.take_for_tools()
        target = Target(worker, self.options, self.bench.info.processors)
        try:
            target.write_code(self.code)
            with self.bench.lane.entered():
                seed = seed_from(secrets.token_hex(16), case)
                known = self.bench.facts.of(self.problem).of(case)
                admitted = known.admitted(self.options.inputs) if known else ()
                reference = Case(self.problem, case, self.bench.device)
                target.write(reference, distribution, seed, admitted)
                del reference
                torch.cuda.empty_cache()  # what the judge keeps for itself, the program may lack
            yield target
        finally:
            self.bench.candidates.retire(worker)

    def _rehearsed(self, target: Target, step: Step) -> int | None:
        """The program's exit code without a tool. It compiles outside the lane."""
        code = target.rehearse(self.options.build_timeout, "load")
        if code != 0:
            return code
        with self.bench.lane.entered():
            return target.rehearse(CALLS * self.options.limits().first, step)
