"""KernelBench run folders: kernel files, and verdicts in `eval_results.json`.

As trajectories, samples become episodes of one turn whose flag says that KernelBench judged them.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.extract import fenced
from kevin_env.judge.api import Submission
from kevin_env.outcome import CompileError, Correct, Incorrect, Outcome, RuntimeFailure
from kevin_env.record import ProblemRef, Trajectory, Turn
from kevin_env.score import kevin

RESULTS = "eval_results.json"
_KERNEL = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_INPUTS = "shipped"
_MILLISECOND = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel of a run, with KernelBench's verdict."""

    file: Path
    level: int
    number: int
    """Of the problem within its level."""
    sample: int
    verdict: Outcome | None
    """KernelBench's verdict as an outcome; None if it recorded none."""

    @property
    def code(self) -> str:
        """The file's text."""
        return self.file.read_text(encoding="utf-8", errors="replace")


def read_samples(folder: Path, trouble: Callable[[str], None]) -> list[Sample]:
    """All kernels of a run folder, sorted by level, problem and sample.

    `trouble` is called with a line about results that belong to no kernel.

    Raises:
        BadInput: if the folder holds no kernels, or its results are not KernelBench's.
    """
    results = _results(folder, trouble)
    names = [(file, _KERNEL.fullmatch(file.name)) for file in folder.iterdir()]
    for file in [file for file, found in names if found and not file.is_file()]:
        trouble(f"{file} is not a file, or a link to none; it is left out")
    names = [(file, found) for file, found in names if file.is_file()]
    files = [(*map(int, found.groups()), file) for file, found in names if found]
    if not files:
        raise BadInput(
            f"{folder} has no KernelBench kernels, such as level_1_problem_23_sample_0_kernel.py"
        )
    levels = Counter((number, sample) for _, number, sample, _ in files)
    for number, sample in sorted(results.keys() - levels.keys()):
        which = f"problem {number} sample {sample}"
        trouble(f"{folder / RESULTS}: {which} has no kernel file; it is left out")
    several = {key for key, count in levels.items() if count > 1} & results.keys()
    if several:  # the results do not name the level: KernelBench expects one per folder
        which = f"{len(several)} results may belong to more than one level"
        trouble(f"{folder / RESULTS}: {which}; they are left out")
    known = {key: outcome_of(result) for key, result in results.items() if key not in several}
    return [
        Sample(file, level, number, sample, known.get((number, sample)))
        for level, number, sample, file in sorted(files)
    ]


def outcome_of(result: dict[str, Any]) -> Outcome:
    """An entry of `eval_results.json`, with times in milliseconds, as an outcome."""
    more = result.get("metadata")
    more = more if isinstance(more, dict) else {}
    if result.get("correctness"):
        return _correct(result)
    failures = ("runtime_error", "cuda_error", "gpu_error", "other_error", "error")
    if any(name in more for name in failures):
        error = _first(more, *failures)
        details = str(more.get("runtime_error_traceback") or error)
        return RuntimeFailure(kind="exception", message=error, details=details)
    if not result.get("compiled"):
        error = _first(more, "compilation_error")
        return CompileError(kind="compiler", message=error.split("\n")[0], details=error)
    return Incorrect(kind="values", message=_first(more, "correctness_issue"), input_set=_INPUTS)


def _correct(result: dict[str, Any]) -> Correct:
    own, reference = _seconds(result.get("runtime")), _seconds(result.get("ref_runtime"))
    if own is None or reference is None:
        words = "all outputs were correct; no time of the reference is recorded"
        return Correct(kind="too_noisy", message=words, submission_seconds=own)
    speedup = reference / own
    words = f"all outputs were correct; {speedup:.3g}x the reference's speed"
    return Correct(
        kind="timed",
        message=words,
        speedup=speedup,
        reference_seconds=reference,
        submission_seconds=own,
    )


def _results(folder: Path, trouble: Callable[[str], None]) -> dict[tuple[int, int], dict[str, Any]]:
    """Results by problem and sample: one per problem before October 2025, a list since then."""
    path = folder / RESULTS
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it is not an object with a key per problem")
        others = [problem for problem in values if not problem.isdecimal()]
        if others:
            which = f"{len(others)} keys are no problem's number, such as {others[0][:40]!r}"
            trouble(f"{path}: {which}; they are left out")
        pairs = [
            (int(problem), each)
            for problem, value in values.items()
            if problem not in others
            for each in (value if isinstance(value, list) else [value])
        ]
        return {
            (problem, int(each.get("sample_id", 0))): each
            for problem, each in pairs
            if isinstance(each, dict)
        }
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: {error}") from error


def _seconds(value: Any) -> float | None:
    """From milliseconds; None for -1, which means not measured."""
    known = isinstance(value, int | float) and 0 < value < float("inf")
    return value * _MILLISECOND if known else None


def _first(more: dict[str, Any], *names: str) -> str:
    return next((str(more[name]) for name in names if more.get(name)), "no reason recorded")


FLAG = "judged by KernelBench, not by kevin-env"


def read_run(folder: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    """An episode per kernel with a result.

    `trouble` is called with a line about each other kernel. Otherwise as `read_samples`.

    Raises:
        BadInput: if the folder has no results.
    """
    if not (folder / RESULTS).is_file():
        raise BadInput(f"{folder} is not an evaluated KernelBench run: it has no {RESULTS}")
    for sample in read_samples(folder, trouble):
        if sample.verdict is None:
            trouble(f"{sample.file} has no result in {RESULTS}; it is left out")
        else:
            yield _episode(sample, sample.verdict)


def _episode(sample: Sample, outcome: Outcome) -> Trajectory:
    code = sample.code
    score = kevin(outcome)
    run = sample.file.parent.name
    turn = Turn(
        turn=1,
        messages=(),
        reply=fenced(code),
        submission=Submission(code=code),
        outcome=outcome,
        score=score,
        feedback=outcome.message,
        flags=(FLAG,),
    )
    digest = hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
    key = f"{run}/{sample.level}/{sample.number}/{sample.sample}/{digest}"
    return Trajectory(
        episode_id=hashlib.sha256(key.encode()).hexdigest()[:32],
        created=datetime.fromtimestamp(sample.file.stat().st_mtime, UTC).isoformat(
            timespec="seconds"
        ),
        problem=ProblemRef(
            id=f"KernelBench_L{sample.level}_{sample.number}", sha256="", level=sample.level
        ),
        config={
            "max_turns": 1,
            "gamma": 0.4,
            "returns": "sum",
            "score": "kevin",
            "imported_from": "KernelBench",
        },
        model=run,
        turns=(turn,),
        returns=(score,),
        stop_reason="max_turns",
    )
