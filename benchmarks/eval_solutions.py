"""`kevin-env eval` with the reference solutions as its policy.

A problem of most levels, two turns each: the CUDA solution if there is one, then Triton's; speedups
over eager PyTorch and torch.compile. Rows are overall figures with bootstrap intervals, then the
best of each problem.

    python benchmarks/eval_solutions.py --device cuda \\
        --json benchmarks/results/eval_solutions.h200.json
    python benchmarks/eval_solutions.py --run FOLDER --json FILE        # of a finished run
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resultfile import Row, device_name, plain_row, write_result

from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

PROBLEMS = (
    "L1_23_Softmax", "L1_36_RMSNorm_", "L1_95_CrossEntropyLoss", "L3_104_RotaryEmbedding",
    "L4_12_CausalConv1dSiLU",
    "L5_1_NBody_Gravitational", "L6_2_Histogram_256", "L9_1_PrefixSum_ExclusiveScan",
)  # fmt: skip
BASELINES = ("eager", "compile")


def play(device: str, problems: list[str], out: Path) -> None:
    """Runs the evaluation and shows its output.

    Raises:
        SystemExit: when it fails.
    """
    what = [
        "--problem",
        ",".join(problems),
        "--samples",
        "1",
        "--max-turns",
        "2",
        "--device",
        device,
        "--out",
        str(out),
    ]
    baselines = f"baselines={json.dumps(BASELINES)}"
    run = [
        sys.executable,
        "-m",
        "kevin_env",
        "eval",
        "-o",
        "policy.kind=solutions",
        "-o",
        baselines,
        *what,
        "--plain",
    ]
    if code := subprocess.run(run).returncode:
        raise SystemExit(f"kevin-env eval ended with {code}")


def overall(figures: dict[str, Any]) -> Iterator[Row]:
    """Rates and speedups over all problems."""
    for name, rate in figures["rates"].items():
        yield figure(f"{name} rate", rate, "share")
    for baseline, speed in figures["speed"].items():
        yield figure(f"speedup against {baseline}", speed["speedup"]["avg"], "times")
        yield figure(
            f"geometric mean of the solved against {baseline}", speed["geomean_solved"], "times"
        )
        for least, fast in speed["fast"].items():
            yield figure(f"fast_{least} against {baseline}", fast["avg"], "share")


def figure(name: str, estimate: dict[str, Any], unit: str) -> Row:
    """A figure with its interval, over `n` problems."""
    return plain_row(name, estimate["value"], unit, estimate["n"]) | {
        "interval": [estimate["low"], estimate["high"]]
    }


def best(episodes: list[Trajectory]) -> Iterator[Row]:
    """The best speedup of each problem against eager PyTorch, with its interval; null if none was
    timed.
    """
    for episode in episodes:
        outcomes = [turn.outcome for turn in episode.turns]
        timed = [each for each in outcomes if getattr(each, "speedup", None)]
        fastest = max(timed, key=lambda each: getattr(each, "speedup", 0.0), default=outcomes[-1])
        row = plain_row(
            f"{episode.problem.id}: best", getattr(fastest, "speedup", None), "times", len(outcomes)
        )
        yield row | {
            "outcome": f"{fastest.category}/{fastest.kind}",
            "interval": getattr(fastest, "speedup_interval", None),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--run", type=Path, help="a run folder; nothing is played")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = options.run or Path(folder, "run")
        if options.run is None:
            play(options.device, list(options.problems), out)
        figures = json.loads((out / "metrics.json").read_text())["overall"]
        episodes = [
            each
            for each in read_trajectories(out / "trajectories.jsonl")
            if isinstance(each, Trajectory)
        ]
    device = next(each.hardware for each in episodes if each.hardware)
    write_result(
        options.json, device_name(device), device.versions, [*overall(figures), *best(episodes)]
    )


if __name__ == "__main__":
    main()
