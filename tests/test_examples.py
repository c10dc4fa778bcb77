"""The examples run as their docstrings say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_gym_loop_plays_a_wrong_and_a_right_answer() -> None:
    command = [sys.executable, str(EXAMPLES / "gym_loop.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("correctness/values")
    assert lines[1].startswith("correct/")
    assert lines[2].startswith("returns [")
