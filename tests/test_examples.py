"""The examples run as their docstrings say."""

import subprocess
import sys
from pathlib import Path

from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_gym_loop_plays_a_wrong_and_a_right_answer() -> None:
    command = [sys.executable, str(EXAMPLES / "gym_loop.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("correctness/values")
    assert lines[1].startswith("correct/")
    assert lines[2].startswith("returns [")


def test_the_recorded_episode_can_be_read() -> None:
    (trajectory,) = read_trajectories(EXAMPLES / "demo.h200.jsonl")
    assert isinstance(trajectory, Trajectory)
    assert [turn.outcome.category for turn in trajectory.turns] == [
        "compile", "runtime", "correctness", "correct", "correct",
    ]  # fmt: skip
    assert trajectory.returns[-1] == trajectory.turns[-1].score
