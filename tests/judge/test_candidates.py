"""Where candidates come from: a fork server that hangs is replaced, and closing ends all of them."""

import logging
import os
import signal

import pytest
import torch
from judges import QUICK
from processes import descendants, outlived

from kevin_env.judge import JudgeError
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import inform
from kevin_env.judge.workers import launcher
from kevin_env.judge.workers.launcher import ForkServer


def test_a_fork_server_that_is_stopped_is_replaced_and_closing_ends_candidates_in_use(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    device, server = torch.device("cpu"), ForkServer("cpu")
    before = descendants(os.getpid())
    bench = Bench(device, inform(device), server, QUICK)
    try:
        bench.candidates.end_spares()
        monkeypatch.setattr(launcher, "ANSWER_SECONDS", 5.0)
        os.kill(server._process.pid, signal.SIGSTOP)
        with caplog.at_level(logging.WARNING):
            used = bench.candidates.take()
        assert used.waiting and not server.alive
        assert "the fork server does not answer" in caplog.text
        started = descendants(os.getpid()) - before
    finally:
        bench.close()
    assert started and not outlived(started) and not used.folder.parent.exists()
    with pytest.raises(JudgeError, match="the judge is closed"):
        bench.candidates.take()
