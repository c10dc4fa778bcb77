"""Nothing runs once everything has been stopped, whoever continues whom meanwhile."""

import pytest

from kevin_env.judge import stopping


class Helpers:
    """Two processes. The second continues the first just before it meets its own signal: once or not at all."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.runs = {1: True, 2: True}

    def signal(self, number: int, isolated: bool) -> None:
        self.runs[1] = False

    def stopped(self, pid: int) -> bool:
        if pid == 2:
            self.runs[1] = self.runs[1] or self.left > 0
            self.runs[2], self.left = False, self.left - 1
        return not self.runs[pid]


@pytest.mark.parametrize("times", [0, 1])
def test_one_that_was_continued_after_it_was_looked_at_is_stopped_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    helpers = Helpers(times)
    monkeypatch.setattr(stopping, "signal_all", helpers.signal)
    monkeypatch.setattr(stopping, "_stopped", helpers.stopped)
    monkeypatch.setattr(stopping, "watched", lambda isolated: [1, 2])
    assert stopping.stop_all(True)
    assert helpers.runs == {1: False, 2: False}
