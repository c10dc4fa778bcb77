"""Pools and processes: forked at any moment, or started by multiprocessing, a child has answers."""

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from plain_judge import FACTS, OUTCOME, PROGRAM
from processes import descendants, named

from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.outcome import Outcome
from kevin_env.pools.base import RequestPool
from kevin_env.pools.http import HttpPool
from kevin_env.pools.local import LocalPool
from kevin_env.pools.remote import Remote
from kevin_env.problem import Problem

PLAIN = partial(Remote, program=PROGRAM)
PROBLEM = Problem(id="any", source="", name="any", statement="")
CPU = Options(device="cpu")
SECONDS = 60


def judged(pool: RequestPool) -> Outcome:
    return pool.submit(PROBLEM, Submission(code=""), CPU).result(SECONDS).outcome


def made_and_judged() -> Outcome:
    with LocalPool(start=PLAIN) as pool:
        return judged(pool)


def forked(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in a forked child, which has `SECONDS` for it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = work()
        except BaseException as error:
            result = error
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    try:
        assert select.select([reader], [], [], SECONDS)[0], "the child hangs"
        result = pickle.loads(os.read(reader, 1 << 16))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
    if isinstance(result, BaseException):
        raise result
    return result


def own_judges() -> list[int]:
    return named(descendants(os.getpid()), *PROGRAM)


def test_a_child_is_not_given_facts_that_its_parent_waits_for() -> None:
    held = PROBLEM.model_copy(update={"source": f"held for {os.getpid()}"})
    with LocalPool(start=PLAIN) as pool:
        waiting = pool.describe(held, CPU)
        assert forked(lambda: pool.describe(held, CPU).result(SECONDS)) == FACTS
        assert pool.describe(held, CPU) is waiting and not waiting.done()


def test_a_child_is_not_given_facts_that_its_parent_awaits_from_a_server() -> None:
    with HttpPool("http://127.0.0.1:9") as pool:
        waiting = pool.describe(PROBLEM, CPU)
        assert forked(lambda: pool.describe(PROBLEM, CPU) is not waiting)
        with pytest.raises(JudgeError, match="the pool is closed"):
            forked(lambda: (pool.close(), pool.describe(PROBLEM, CPU).result(SECONDS)))
        assert not waiting.done() and pickle.loads(pickle.dumps(pool)).url == pool.url


def test_a_child_is_told_that_ray_does_not_work_in_it() -> None:
    pytest.importorskip("ray")
    from kevin_env.pools.ray_pool import RayPool

    with (
        RayPool() as pool,
        pytest.raises(JudgeError, match="Ray does not work in a forked process"),
    ):
        forked(lambda: judged(pool))


class Held:
    """Starts judges, which in this process wait while they start, or while they are closed."""

    def __init__(self, starting: bool) -> None:
        self.starting, self.owner = starting, os.getpid()
        self.waiting, self.go_on = threading.Semaphore(0), threading.Event()

    def wait(self, starting: bool) -> None:
        if (starting, os.getpid()) == (self.starting, self.owner):
            self.waiting.release()
            assert self.go_on.wait(SECONDS)

    def __call__(self, device: str, **more: Any) -> Remote:
        self.wait(starting=True)
        judge = PLAIN(device, **more)
        end = judge.close
        judge.close = lambda: (judge.hang_up(), self.wait(starting=False), end())[-1]
        return judge


def test_a_child_does_not_wait_for_a_judge_that_its_parent_is_starting() -> None:
    held = Held(starting=True)
    with LocalPool(start=held) as pool:
        submitted = pool.submit(PROBLEM, Submission(code=""), CPU)
        assert held.waiting.acquire(timeout=SECONDS)
        try:
            assert forked(lambda: judged(pool)) == OUTCOME
        finally:
            held.go_on.set()
        assert submitted.result(SECONDS).outcome == OUTCOME


def test_a_child_does_not_wait_for_a_judge_that_its_parent_is_replacing() -> None:
    held = Held(starting=False)
    with LocalPool(start=held) as pool:
        assert judged(pool) == OUTCOME
        (judge,) = own_judges()
        submitted = pool.submit(PROBLEM, Submission(code="hold"), CPU)
        while not pool._judges.of("cpu")._waiting:  # else the next judge would hold it
            time.sleep(0.001)
        os.kill(judge, signal.SIGKILL)
        assert held.waiting.acquire(timeout=SECONDS)  # its requests fail when it is gone
        another = pool.submit(PROBLEM, Submission(code=""), CPU)
        assert held.waiting.acquire(timeout=SECONDS)
        try:
            assert forked(lambda: judged(pool)) == OUTCOME
        finally:
            held.go_on.set()
        assert submitted.result(SECONDS).outcome == another.result(SECONDS).outcome == OUTCOME


def test_a_child_of_a_process_that_closes_its_pool_is_told_so() -> None:
    held = Held(starting=False)
    pool = LocalPool(start=held)
    assert judged(pool) == OUTCOME
    closing = threading.Thread(target=pool.close)
    closing.start()
    assert held.waiting.acquire(timeout=SECONDS)
    try:
        with pytest.raises(JudgeError, match="the pool is closed"):
            forked(lambda: judged(pool))
    finally:
        held.go_on.set()
        closing.join()


def test_a_child_leaves_its_parents_judges_alone() -> None:
    with LocalPool(start=PLAIN) as pool:
        assert judged(pool) == OUTCOME
        before = own_judges()

        def work() -> Outcome:
            outcome = judged(pool)
            pool.close()
            return outcome

        assert forked(work) == OUTCOME
        assert judged(pool) == OUTCOME and own_judges() == before


def test_a_judge_that_ends_is_noticed_though_a_child_was_forked_while_it_started() -> None:
    """The child would keep the judge's end of the connection open."""
    children = list[int]()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)

    def start(device: str, **more: Any) -> Remote:
        forking = threading.Thread(target=fork)
        popen = subprocess.Popen

        def slow(*arguments: Any, **options: Any) -> Any:
            if not forking.ident:
                forking.start()
                forking.join(1)  # a fork that need not wait is over by then
            return popen(*arguments, **options)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(subprocess, "Popen", slow)
            judge = PLAIN(device, **more)
        forking.join(SECONDS)
        return judge

    try:
        with LocalPool(start=start) as pool:
            assert judged(pool) == OUTCOME
            (judge,) = own_judges()
            held = threading.Event()
            submitted = pool.submit(PROBLEM, Submission(code="hold"), CPU, lambda _: held.set())
            assert held.wait(SECONDS)
            os.kill(judge, signal.SIGKILL)
            assert submitted.result(SECONDS).outcome == OUTCOME
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


STARTING = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from test_forks import OUTCOME, PLAIN, LocalPool, judged, made_and_judged
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with LocalPool(start=PLAIN) as pool, ProcessPoolExecutor(1, mp_context=context) as processes:
        assert processes.submit(made_and_judged).result() == OUTCOME
        assert processes.submit(judged, pool).result() == OUTCOME, "by a copy of the pool"
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_of_multiprocessing_has_judges_of_its_own(method: str) -> None:
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", STARTING, method], env={**os.environ, "PYTHONPATH": path},
        timeout=2 * SECONDS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr


class Judged:
    """A dataset whose items are verdicts."""

    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool

    def __len__(self) -> int:
        return 4

    def __getitem__(self, at: int) -> bool:
        return judged(self.pool) == OUTCOME


def test_the_workers_of_a_data_loader_have_judges_of_their_own() -> None:
    from torch.utils.data import DataLoader

    with LocalPool(start=PLAIN) as pool:
        assert judged(pool) == OUTCOME
        loader = DataLoader(
            cast(Any, Judged(pool)), batch_size=None, num_workers=2,
            multiprocessing_context="fork", timeout=SECONDS,
        )  # fmt: skip
        assert list(loader) == [True] * 4
        assert judged(pool) == OUTCOME
