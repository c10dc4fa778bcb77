"""Warm candidates and the judge's own processes: which are kept, and what ends them."""

import errno
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from judges import Lent
from loaded import MEMORY
from processes import descendants, outlived

from kevin_env.judge import JudgeError
from kevin_env.judge.candidates import WarmPool
from kevin_env.judge.device import inform
from kevin_env.judge.timing.baselines import Partner
from kevin_env.judge.workers import launcher
from kevin_env.judge.workers.errors import Failed
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker

INFO = inform(torch.device("cpu"))
SPARES = 2
NAMED = "class Model:\n    name = {!r}"


@pytest.fixture
def pool(servers) -> Iterator[WarmPool]:
    pool = WarmPool(INFO, MEMORY, SPARES, server=Lent(servers("root")))
    yield pool
    pool.close()


def spares(pool: WarmPool) -> list[Worker]:
    """Those that are ready, once none is being started."""
    end = time.monotonic() + 60
    while pool._starting and time.monotonic() < end:
        time.sleep(0.01)
    return pool._spares


def no_files_left(*_: object) -> None:
    raise OSError(errno.EMFILE, "too many open files")


def test_a_candidate_is_replaced_when_its_submission_has_ended(pool: WarmPool) -> None:
    ready = list(spares(pool))
    assert len(ready) == SPARES
    with pool.candidate() as worker:
        assert worker in ready and len(spares(pool)) == SPARES - 1
    assert not worker.folder.exists()
    assert len(spares(pool)) == SPARES and worker not in pool._spares


def test_candidates_of_a_language_have_imported_it(pool: WarmPool) -> None:
    code = "import sys\nassert 'poplib' in sys.modules\nclass ModelNew: pass"
    preloaded = WarmPool(INFO, MEMORY, 0, module="poplib")
    try:
        with preloaded.candidate() as worker:
            worker.ask("load", 30.0, path=worker.path, code=code, entry="ModelNew")
        with pool.candidate() as worker, pytest.raises(Failed):
            worker.ask("load", 30.0, path=worker.path, code=code, entry="ModelNew")
    finally:
        preloaded.close()


@pytest.mark.full
def test_the_slow_first_error_of_tvm_is_raised_before_a_candidate_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = (
        "raised = 0\ndef load_module(path):\n    global raised\n    raised += 1\n    raise OSError"
    )
    (tmp_path / "tvm_ffi.py").write_text(stub)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    info = INFO.model_copy(update={"capability": "9.0"})
    code = "import tvm_ffi\nassert tvm_ffi.raised == 1\nclass ModelNew: pass"
    preloaded = WarmPool(info, MEMORY, 0, module="tvm_ffi")
    try:
        with preloaded.candidate() as worker:
            worker.ask("load", 30.0, path=worker.path, code=code, entry="ModelNew")
    finally:
        preloaded.close()


def test_one_that_was_killed_while_it_waited_is_not_used(pool: WarmPool) -> None:
    for spare in spares(pool):
        spare.end("nothing")
        while not spare.answers_within(0.0):
            time.sleep(0.001)
    with pool.candidate() as worker:
        assert not worker.answers_within(0.0)


def test_what_cannot_be_started_now_is_started_later(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(spares(pool)) == SPARES
    with monkeypatch.context() as patch:
        patch.setattr(WarmPool, "_prepared", no_files_left)
        with pool.candidate():
            pass
        assert len(spares(pool)) == SPARES - 1
    with pool.candidate():
        pass
    assert len(spares(pool)) == SPARES


def test_one_that_cannot_be_prepared_is_ended(
    pool: WarmPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, forked = list[Worker](), WarmPool._forked
    spares(pool).clear()
    monkeypatch.setattr(WarmPool, "_forked", lambda pool: made.append(forked(pool)) or made[-1])
    monkeypatch.setattr(Worker, "prepare", no_files_left)
    with pytest.raises(OSError, match="too many"):
        pool.take()
    assert not made[0].folder.exists()


@pytest.mark.full
def test_a_fork_server_that_is_stopped_is_replaced_and_closing_ends_what_is_in_use(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before, server = descendants(os.getpid()), ForkServer("cpu")
    pool = WarmPool(INFO, MEMORY, 0, server=server)
    try:
        pool.sandbox(pool.take())
        monkeypatch.setattr(launcher, "ANSWER_SECONDS", 5.0)
        os.kill(server._process.pid, signal.SIGSTOP)
        with caplog.at_level(logging.WARNING):
            used = pool.take()
        assert not used.answers_within(0.0) and not server.alive
        assert "the fork server does not answer" in caplog.text
        started = descendants(os.getpid()) - before
    finally:
        pool.close()
    assert started and not outlived(started) and not used.folder.parent.exists()
    with pytest.raises(JudgeError, match="the judge is closed"):
        pool.take()


def test_a_reference_stays_loaded_until_there_is_another(pool: WarmPool) -> None:
    partner = Partner(pool.take_trusted, torch.device("cpu"), 0)
    one, fresh = partner.load("a", NAMED.format("a"), "Model")
    assert fresh and partner.load("a", "raise ValueError", "Model") == (one, False)
    assert partner.load("b", NAMED.format("b"), "Model") == (one, True)
    assert partner.load("a", NAMED.format("a"), "Model") == (one, True)
    partner.close()
    assert not one.folder.exists()


def test_a_reference_that_ended_is_replaced_and_one_that_does_not_load_is_the_judges_failure(
    pool: WarmPool,
) -> None:
    partner = Partner(pool.take_trusted, torch.device("cpu"), 0)
    one, _ = partner.load("a", NAMED.format("a"), "Model")
    one.end("nothing")
    while not one.answers_within(0.0):
        time.sleep(0.001)
    other, fresh = partner.load("a", NAMED.format("a"), "Model")
    assert other is not one and not other.answers_within(0.0) and fresh
    for _ in range(2):
        with pytest.raises(JudgeError, match="a process of the judge's own failed"):
            partner.load("b", "raise ValueError", "Model")
    partner.close()
