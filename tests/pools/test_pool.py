"""The pool of real judges: what it answers, and that no process of it outlives its client."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from corpus import FOLDER
from judges import QUICK
from plain_judge import FATAL, OUTCOME, PROGRAM, SILENT
from processes import descendants, named, outlived, wait_for, zombies

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.api import Stage
from kevin_env.judge.sandbox import cgroups
from kevin_env.outcome import RuntimeFailure
from kevin_env.pools.local import LocalPool
from kevin_env.pools.remote import JudgeGone, Remote
from kevin_env.problem import Problem, ProblemError, load_problem

SOFTMAX = load_problem(str(FOLDER / "problems/softmax.py"))
LINEAR = load_problem(str(FOLDER / "problems/linear.py"))
TALKATIVE = SOFTMAX.model_copy(update={"source": f"{SOFTMAX.source}\nprint('a word')\n"})
CPU = Options(device="cpu")
HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
RIGHT = Submission(code=f"{HEAD}        return torch.softmax(x, dim=1)\n")
WRONG = Submission(code=f"{HEAD}        return x\n")
BUSY = Submission(
    code=f"import ctypes, time\n{HEAD}"
    "        ctypes.CDLL(None).prctl(15, b'kevin-busy', 0, 0, 0)\n"
    "        time.sleep(1000)\n"
)
SLOW = Submission(
    code="import ctypes, time\nctypes.CDLL(None).prctl(15, b'kevin-slow', 0, 0, 0)\n"
    f"time.sleep(1)\n{RIGHT.code}"
)


def judged(
    pool: LocalPool, submission: Submission, problem: Problem = SOFTMAX, options: Options = CPU
) -> Judgement:
    return pool.submit(problem, submission, options).result(120)


def judges() -> set[int]:
    """The judge processes of every pool that is open here."""
    return set(named(descendants(os.getpid()), "kevin_env.judge.server"))


def test_the_facts_of_a_problem(pool: LocalPool) -> None:
    facts = pool.describe(LINEAR, CPU).result()
    assert (
        facts.device == pool.device("cpu")
        and facts.device.device == "cpu"
        and facts.device.versions["torch"]
    )
    assert [case.name for case in facts.cases] == ["cpu", "square"], (
        "`main` is too large for a CPU, the timed case is first"
    )
    assert [(i.name, i.dtype, i.shape) for i in facts.cases[0].inputs] == [
        ("x", "float32", (64, 200))
    ]
    assert facts.cases[0].outputs == ("float32[64, 150]",)
    assert facts.weights == ("linear.weight: float32[150, 200]", "linear.bias: float32[150]")
    assert facts.precision == "ieee" and len(facts.distributions) == 5
    assert pool.describe(LINEAR, CPU) is pool.describe(LINEAR, CPU), "asked once"


def test_cancelling_ends_what_is_judged(pool: LocalPool) -> None:
    judging = pool.submit(SOFTMAX, BUSY, CPU.model_copy(update={"call_timeout": 1000.0}))
    busy = wait_for("kevin-busy")
    processes = {each for each in descendants(os.getpid()) if each.pid == busy}
    assert judging.cancel() and judging.cancelled()
    assert wait([judging], timeout=60).done
    assert processes and not outlived(processes)
    assert judged(pool, RIGHT).outcome.category == "correct"


@pytest.mark.full
@pytest.mark.parametrize("device", ["cuda:63", "tpu"])
def test_a_device_that_is_not_there_is_one_clear_line(pool: LocalPool, device: str) -> None:
    with pytest.raises(JudgeError, match=device) as caught:
        judged(pool, RIGHT, options=Options(device=device))
    assert "\n" not in str(caught.value) and "cpu" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("torch.softmax(x, dim=1)", "torch.softmax(x, dim=7)", "forward"),
        ("2 * torch.randn(ROWS, COLUMNS)", "1 / 0", "get_inputs"),
        ("ROWS = 4096", "ROWS = undefined", "module"),
    ],
)
def test_a_reference_that_fails_is_the_problems_error(
    pool: LocalPool, old: str, new: str, place: str
) -> None:
    assert old in SOFTMAX.source
    source = SOFTMAX.source.replace(old, new).replace('{"cpu"', '{} and {"cpu"')
    broken = SOFTMAX.model_copy(update={"source": source, "cases": ("main",)})
    text = f"softmax: its reference fails in (the )?{place}: "
    with pytest.raises(ProblemError, match=text):
        judged(pool, RIGHT, broken)
    with pytest.raises(ProblemError, match=text):
        pool.describe(broken, CPU).result()


def test_stages_come_in_order_and_their_seconds_are_the_wall_time(pool: LocalPool) -> None:
    pool.device("cpu")
    stages: list[Stage] = []
    start = time.monotonic()
    judgement = pool.submit(SOFTMAX, SLOW, CPU, stages.append).result()
    wall = time.monotonic() - start
    first = list(dict.fromkeys(stages))
    assert first == [stage for stage in get_args(Stage) if stage != "profile"], (
        "which nobody asked for"
    )
    assert max(1, wall / 2) < judgement.seconds.total <= wall  # it sleeps for a second
    assert judgement.seconds.time > 0 and judgement.seconds.verify > 0


def test_a_candidate_killed_from_outside_is_judged_again_and_killed_twice_is_a_verdict(
    pool: LocalPool,
) -> None:
    future = pool.submit(SOFTMAX, BUSY, CPU)
    first = wait_for("kevin-busy")
    os.kill(first, signal.SIGKILL)
    while (second := wait_for("kevin-busy")) == first:
        time.sleep(0.02)
    os.kill(second, signal.SIGKILL)
    outcome = future.result(60).outcome
    assert isinstance(outcome, RuntimeFailure) and outcome.kind in ("killed", "signal"), outcome
    assert judged(pool, RIGHT).outcome.category == "correct"


@pytest.mark.parametrize("victim", ["candidate", "keeper"])
def test_a_right_kernel_killed_from_outside_is_right(pool: LocalPool, victim: str) -> None:
    future = pool.submit(SOFTMAX, SLOW, CPU)
    process = wait_for("kevin-slow")
    keeper = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(process if victim == "candidate" else keeper, signal.SIGKILL)
    assert future.result(120).outcome.category == "correct"


def test_a_fork_server_that_dies_is_replaced(pool: LocalPool) -> None:
    assert judged(pool, WRONG).outcome.category == "correctness"
    (server,) = judges()
    os.kill(
        min(named(descendants(server), "kevin_env.judge.workers.forkserver")), signal.SIGKILL
    )  # others are its forks
    for _ in range(2):  # a spare that waits is still good; the next candidate needs the new one
        assert judged(pool, WRONG).outcome.category == "correctness"


@pytest.mark.full
def test_a_judge_that_dies_is_replaced_by_one_like_it_and_closing_twice_ends_all_of_it() -> None:
    others, before = judges(), set(Path(tempfile.gettempdir()).glob("kevin-run-*"))
    allocates = Submission(code=f"{HEAD}        return torch.ones(800 << 20, dtype=torch.uint8)\n")
    with LocalPool(pace=QUICK, memory=1 << 30) as pool:
        future = pool.submit(SOFTMAX, SLOW, CPU)
        wait_for("kevin-slow")
        (server,) = judges() - others
        candidates = descendants(server)
        folders = set(Path(tempfile.gettempdir()).glob("kevin-run-*")) - before
        os.kill(server, signal.SIGKILL)
        assert future.result(120).outcome.category == "correct"
        assert candidates and not outlived(candidates)
        assert folders and not any(each.exists() for each in folders)
        killed = judged(pool, allocates).outcome
        assert isinstance(killed, RuntimeFailure) and killed.kind == "killed"
        assert "614 MiB" in killed.message, "a share of what the pool was given"
        running = pool.submit(SOFTMAX, BUSY, CPU)
        wait_for("kevin-busy")
        (server,) = judges() - others
        candidates = descendants(server)
        pool.close()
    assert candidates and not outlived(candidates) and judges() == others
    with pytest.raises(JudgeError):
        running.result(60)


def test_a_judge_that_hangs_is_replaced_and_what_it_had_is_judged() -> None:
    begun = threading.Event()
    with LocalPool(start=partial(Remote, beat=0.25, program=PROGRAM)) as pool:
        future = pool.submit(SOFTMAX, Submission(code="hold"), CPU, lambda _: begun.set())
        assert begun.wait(60)
        (server,) = named(descendants(os.getpid()), *PROGRAM)
        os.kill(server, signal.SIGSTOP)
        assert future.result(60).outcome == OUTCOME
        (other,) = named(descendants(os.getpid()), *PROGRAM)
        assert other != server


def test_a_judge_that_cannot_be_reached_gets_no_further_request() -> None:
    """It has not been noticed that its process is gone: nothing was received since."""
    judge = Remote("cpu", program=PROGRAM)
    try:
        assert judge.info
        os.kill(judge.pid, signal.SIGSTOP)
        judge._channel.sock.shutdown(socket.SHUT_WR)
        with pytest.raises(JudgeGone):
            judge.ask({"id": "1", "do": "describe"}).result(0)
        assert not judge.alive
    finally:
        judge.kill()
        judge.close()


@pytest.mark.parametrize(
    ("program", "patience", "message"),
    [
        (SILENT, 0.5, r"the judge process did not start within 0\.5 s"),
        (FATAL, 60.0, "no such device here"),
    ],
)
def test_a_judge_that_does_not_start_is_the_judges_failure(
    program: tuple[str, ...], patience: float, message: str
) -> None:
    with LocalPool(start=partial(Remote, patience=patience, program=program)) as pool:
        with pytest.raises(JudgeError, match=f"^{message}$"):
            pool.device("cpu")
        assert not named(descendants(os.getpid()), program[1]) and not zombies()


def test_a_judge_that_is_killed_while_it_starts_is_replaced() -> None:
    programs = iter((SILENT, PROGRAM))

    def start(device: str, **more: Any) -> Remote:
        return Remote(device, program=next(programs), **more)

    with LocalPool(start=start) as pool:
        future = pool.submit(SOFTMAX, Submission(code=""), CPU)
        os.kill(wait_for(SILENT[1]), signal.SIGKILL)
        assert future.result(60).outcome == OUTCOME


def test_a_pool_that_is_closed_while_its_judge_starts_does_not_wait_for_it() -> None:
    pool = LocalPool(start=partial(Remote, program=SILENT))
    starting = threading.Thread(target=pytest.raises, args=(JudgeError, pool.device, "cpu"))
    starting.start()
    wait_for(SILENT[1])
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < 10
    starting.join(10)
    assert not starting.is_alive()


CLIENT = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored
from kevin_env.pools.local import LocalPool
from judges import QUICK
from plain_judge import OUTCOME, PROGRAM
from test_pool import BUSY, CPU, SOFTMAX, TALKATIVE, WRONG, judged
if __name__ == "__main__":
    pool = LocalPool(pace=QUICK)
    print(judged(pool, WRONG, TALKATIVE).outcome.category, flush=True)
    running = [pool.submit(SOFTMAX, BUSY, CPU) for _ in range(3)]
    if sys.stdin.readline() == "close\\n":
        pool.close()
        sys.stdin.readline()
"""


def client(code: str, folder: Path) -> subprocess.Popen[str]:
    """A process of its own, in a group of its own, that runs `code` as a user's program.

    Args:
        code: The program.
        folder: Its folder for temporary files.
    """
    path = os.pathsep.join(
        [*map(str, Path(__file__).parents[:2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)},
        start_new_session=True,
    )  # fmt: skip


@pytest.fixture
def started(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = client(CLIENT, tmp_path)
    yield process
    process.kill()
    process.communicate()


def left_over(folder: Path, groups: set[Path], seconds: float = 10) -> list[Path]:
    """Folders and groups of candidates that are still there after `seconds`, or none as soon as all
    are gone.
    """
    deadline = time.monotonic() + seconds
    while (
        left := [*folder.glob("kevin-run-*"), *filter(Path.exists, groups)]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize(
    "end",
    [
        *("SIGKILL", "close"),
        *(pytest.param(end, marks=pytest.mark.full) for end in ("exit", "SIGTERM", "SIGINT")),
        pytest.param("SIGTERM to all", marks=pytest.mark.full),
    ],
)
def test_nothing_is_left_of_a_client_that_ends_or_closes_its_pool(
    started: subprocess.Popen[str], tmp_path: Path, end: str
) -> None:
    process = started
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "correctness\n"
    wait_for("kevin-busy", below=process.pid)
    ours = descendants(process.pid)
    assert named(ours, "kevin_env.judge.server") and named(
        ours, "kevin_env.judge.workers.forkserver"
    )
    made = list(tmp_path.glob("kevin-run-*"))
    groups = {home / each.name for home in cgroups.homes() for each in made}
    assert made
    if end in ("exit", "close"):
        process.stdin.write(f"{end}\n")
        process.stdin.flush()
    elif end == "SIGINT":  # as Ctrl-C does: to the whole group in the foreground
        os.killpg(process.pid, signal.SIGINT)
    elif end == "SIGTERM to all":  # as a cluster's scheduler does
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.send_signal(signal.Signals[end])
    if end != "close":
        process.wait(30)
    assert not outlived(ours - {each for each in ours if each.pid == process.pid})
    assert not left_over(tmp_path, groups)
    out, errors = process.communicate("\n" if end == "close" else None)
    assert out == "" and "a word" in errors, "what a problem prints is not what its client prints"


def test_a_closed_pool_judges_nothing_more() -> None:
    pool = LocalPool()
    pool.close()
    pool.close()
    judging = pool.submit(load_problem("L1_26_GELU_"), Submission(code=""), Options(device="cpu"))
    with pytest.raises(JudgeError, match="closed"):
        judging.result(30)


def test_a_failing_display_or_a_long_request_affects_no_other_request(
    pool: LocalPool,
) -> None:
    def broken(stage: Stage) -> None:
        raise ValueError(stage)

    assert pool.submit(SOFTMAX, RIGHT, CPU, broken).result(120).outcome.category == "correct"
    under_way = pool.submit(SOFTMAX, SLOW, CPU)
    with pytest.raises(JudgeError, match="too long to be judged"):
        pool.submit(SOFTMAX, Submission(code=RIGHT.code + "#" * (9 << 20)), CPU).result(120)
    assert under_way.result(120).outcome.category == "correct"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("import sys; sys.exit(3)", "its reference fails"),
        ("CASES = 7", "CASES is not a literal dict of dicts"),
        ("PRECISION = 'fp8'", "PRECISION is 'fp8'; known are ieee, tf32"),
        ("TOLERANCE = 'much'", "its reference fails in TOLERANCE"),
    ],
)
def test_what_is_wrong_with_a_problem_is_said_of_the_problem(
    pool: LocalPool, more: str, told: str
) -> None:
    cases = next(line for line in SOFTMAX.source.splitlines() if line.startswith("CASES"))
    source = SOFTMAX.source.replace(cases, more if more.startswith("CASES") else f"{cases}\n{more}")
    problem = SOFTMAX.model_copy(update={"source": source})
    with pytest.raises(ProblemError, match=told):
        judged(pool, RIGHT, problem)
