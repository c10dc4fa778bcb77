"""Programs and copies of a candidate: how they end, and whom they let go first."""

import os
import time

import pytest

from kevin_env.candidate.programs import run_in_forks


@pytest.mark.timeout(45)
def test_copies_end_as_they_say_and_late_ones_are_killed() -> None:
    ends = run_in_forks(
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
