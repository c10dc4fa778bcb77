"""Programs and copies of a candidate: how they end, and whom they let go first."""

import os
import subprocess
import sys
import time

import pytest

from kevin_env.candidate.commands import NICENESS, gently, in_forks


def test_compilers_let_others_go_first() -> None:
    asked = gently([sys.executable, "-c", "import os; print(os.nice(0))"])
    assert int(subprocess.check_output(asked)) == min(19, os.nice(0) + NICENESS)


@pytest.mark.timeout(45)
def test_copies_end_as_they_say_and_late_ones_are_killed() -> None:
    ends = in_forks(
        [
            lambda: 3,
            lambda: 1 // 0,
            lambda: time.sleep(60) or 0,
            lambda: os.kill(os.getpid(), 9) or 0,
        ],
        5.0,
        {},
    )
    assert ends == [3, 1, None, -9]
