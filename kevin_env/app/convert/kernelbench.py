"""The run folders of KernelBench as trajectories.

Each sample becomes an episode of one turn. The verdict is KernelBench's, not ours, and the turn
says so in its flags.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from kevin_env.app.kernelbench_run import RESULTS, Sample, read_samples
from kevin_env.judge.api import Submission
from kevin_env.outcome import Outcome
from kevin_env.record import ProblemRef, Trajectory, Turn
from kevin_env.score import kevin

FLAG = "judged by KernelBench, not by kevin-env"


def is_run(path: Path) -> bool:
    """Whether a folder is a run of KernelBench that was evaluated."""
    return path.is_dir() and (path / RESULTS).is_file()


def read_run(folder: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    """An episode for each kernel that has a result.

    Args:
        folder: with `level_L_problem_P_sample_S_kernel.py` files.
        trouble: is told which kernels have none, and which results have no kernel.

    Raises:
        BadInput: if there are no kernels, or the results cannot be read.
    """
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
        reply=f"```python\n{code}\n```",
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
