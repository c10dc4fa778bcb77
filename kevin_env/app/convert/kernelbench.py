"""The run folders of KernelBench: kernels in files, what became of them in `eval_results.json`.

Each sample becomes an episode of one turn. The verdict is KernelBench's, not ours, and the turn says so in its flags.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.judge.api import Submission
from kevin_env.outcome import CompileError, Correct, Incorrect, Outcome, RuntimeFailure
from kevin_env.record import ProblemRef, Trajectory, Turn
from kevin_env.score import kevin

RESULTS = "eval_results.json"
FLAG = "judged by KernelBench, not by kevin-env"
_KERNEL = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_INPUTS = "shipped"
_MILLISECOND = 1e-3


def is_run(path: Path) -> bool:
    """Whether a folder is a run of KernelBench."""
    return path.is_dir() and (path / RESULTS).is_file()


def read_run(folder: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    """An episode for each kernel that has a result.

    Args:
        folder: with `level_L_problem_P_sample_S_kernel.py` files.
        trouble: is told which kernels have none, and which results have no kernel.

    Raises:
        BadInput: if the results cannot be read.
    """
    results = _results(folder)
    for file in sorted(folder.iterdir()):
        if not (found := _KERNEL.fullmatch(file.name)):
            continue
        level, problem, sample = map(int, found.groups())
        result = results.pop((problem, sample), None)
        if result is None:
            trouble(f"{file} has no result in {RESULTS}; it is left out")
            continue
        yield _episode(file, level, problem, sample, result)
    for problem, sample in results:
        trouble(f"{folder / RESULTS}: problem {problem} sample {sample} has no kernel file; it is left out")


def outcome_of(result: dict[str, Any]) -> Outcome:
    """KernelBench's verdict in our words. Its times are milliseconds."""
    more = result.get("metadata")
    more = more if isinstance(more, dict) else {}
    if result.get("correctness"):
        return _correct(result)
    if any(name in more for name in ("runtime_error", "cuda_error", "gpu_error")):
        error = _first(more, "runtime_error", "cuda_error", "gpu_error")
        details = str(more.get("runtime_error_traceback") or error)
        return RuntimeFailure(kind="exception", message=error, details=details)
    if not result.get("compiled"):
        error = _first(more, "compilation_error", "other_error", "error")
        return CompileError(kind="compiler", message=error.split("\n")[0], details=error)
    return Incorrect(kind="values", message=_first(more, "correctness_issue"), input_set=_INPUTS)


def _correct(result: dict[str, Any]) -> Correct:
    own, reference = _seconds(result.get("runtime")), _seconds(result.get("ref_runtime"))
    if own is None or reference is None:
        words = "all outputs were right; there is no time of the reference to compare with"
        return Correct(kind="too_noisy", message=words, submission_seconds=own)
    speedup = reference / own
    words = f"all outputs were right; {speedup:.3g}x the reference's speed"
    return Correct(kind="timed", message=words, speedup=speedup, reference_seconds=reference, submission_seconds=own)


def _episode(file: Path, level: int, problem: int, sample: int, result: dict[str, Any]) -> Trajectory:
    code = file.read_text(encoding="utf-8", errors="replace")
    outcome = outcome_of(result)
    score = kevin(outcome)
    run = file.parent.name
    turn = Turn(
        turn=1,
        messages=(),
        reply=f"```python\n{code}\n```",
        submission=Submission(code=code),
        outcome=outcome,
        score=score,
        feedback=outcome.message,
        flags=(FLAG,),
    )
    key = f"{run}/{level}/{problem}/{sample}/{hashlib.sha256(code.encode('utf-8', 'replace')).hexdigest()}"
    return Trajectory(
        episode_id=hashlib.sha256(key.encode()).hexdigest()[:32],
        created=datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        problem=ProblemRef(id=f"KernelBench_L{level}_{problem}", sha256="", level=level),
        config={"max_turns": 1, "gamma": 0.4, "returns": "sum", "score": "kevin", "imported_from": "KernelBench"},
        model=run,
        turns=(turn,),
        returns=(score,),
        stop_reason="max_turns",
    )


def _results(folder: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """By problem and sample; older versions have one result a problem instead of a list."""
    path = folder / RESULTS
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("is not an object by problem")
        pairs = [
            (int(problem), each)
            for problem, value in values.items()
            for each in (value if isinstance(value, list) else [value])
        ]
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    return {(problem, int(each.get("sample_id", 0))): each for problem, each in pairs if isinstance(each, dict)}


def _seconds(value: Any) -> float | None:
    """From milliseconds; None for -1, which stands for not measured."""
    return value * _MILLISECOND if isinstance(value, int | float) and 0 < value < float("inf") else None


def _first(more: dict[str, Any], *names: str) -> str:
    return next((str(more[name]) for name in names if more.get(name)), "no reason is recorded")
