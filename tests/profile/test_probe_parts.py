"""The program under Nsight Compute, part by part: real candidates on the CPU, and a tool that only
runs its program.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from corpus import FOLDER
from loaded import MEMORY
from test_probe_ncu import SOFTMAX, SOURCE, raw

from kevin_env.judge import Options
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.lane.bench import Bench
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.errors import Ended, Failed
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct
from kevin_env.problem import load_problem
from kevin_env.profile import ncu, ncu_session
from kevin_env.profile.look import Look
from kevin_env.profile.ncu_session import NAME, Part, parts_of, run_parts
from kevin_env.profile.outside import Outside
from kevin_env.profile.target import Target
from kevin_env.profile.tools import Ran

pytestmark = pytest.mark.full
RELU = load_problem(str(FOLDER / "problems" / "relu.py"))
TOOL = "import subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; print('TOOL', code); sys.exit(code)"
"""Starts its program, as Nsight Compute does, and counts nothing."""
PAGES = f"import sys; print({{'raw': {raw(SOFTMAX)!r}, 'source': {SOURCE!r}}}[sys.argv[1]])"
MODEL = """
import os, threading, time, torch
print("LOADED", flush=True)
class ModelNew(torch.nn.Module):
    calls = 0
    def __init__(self, *sizes):
        super().__init__()
        print("CONSTRUCTED", flush=True)
    def forward(self, x):
        self.calls += 1
        print("CALL", self.calls, flush=True)
        return x.relu()
"""
FAKES = "\n".join(
    f"open('{name}', 'w').close()" for name in ("at-loaded", "at-warm", "past-loaded", "past-warm")
)
SLEEPS = "import time; time.sleep(99)\n"
SECONDS = 60.0


@pytest.fixture
def start(server: ForkServer) -> Iterator[Callable[[str], Target]]:
    """A submission's program under the tool."""
    workers: list[Worker] = []

    def target(code: str) -> Target:
        workers.append(Worker(server, "cpu", MEMORY, tools=True))
        found = Target(workers[-1], Options(device="cpu"), 1)
        found.write_code(code)
        found.begin(NAME, [sys.executable, "-c", TOOL, *found.holding], {})
        found.write(Case(RELU, "cpu", torch.device("cpu")), "own", 7)
        return found

    yield target
    for worker in workers:
        worker.close()


class Leases:
    """Leases that note who has the device, and whether the candidate was there when it was given
    back.
    """

    def __init__(self, worker: Worker, wait: float = 0.0) -> None:
        self.log: list[str] = []
        self._worker = worker
        self._wait = wait

    @contextmanager
    def named(self, name: str) -> Iterator[None]:
        time.sleep(self._wait)
        self.log.append(name)
        try:
            yield
        finally:
            there = any(descendants(self._worker.pid))
            self.log.append(f"{name} back" if there else f"{name} back, nobody there")

    def parts(
        self, load: float = SECONDS, calls: float = SECONDS, count: float = SECONDS
    ) -> list[Part]:
        return [
            Part("loading", "ready", "loaded", load, lambda: self.named("none")),
            Part("calling", "loaded", "warm", calls, lambda: self.named("shared")),
            Part("counting", "warm", "", count, lambda: self.named("alone")),
        ]


def test_a_program_goes_through_its_parts_each_with_its_lease(start) -> None:
    target = start(MODEL)
    leases = Leases(target.worker)
    ran = run_parts(target, leases.parts())
    assert isinstance(ran, Ran) and ran.code == 0
    assert ran.output.split("\n")[:-1] == [
        "LOADED", "CONSTRUCTED", "CALL 1", "CALL 2", "CALL 3", "TOOL 0",
    ]  # fmt: skip
    assert leases.log == ["none", "none back", "shared", "shared back", "alone", "alone back"]


def test_leases_are_those_of_the_device_and_limits_those_of_the_options() -> None:
    lease = Lease("test-parts-of")
    load, calls, count = parts_of(Options(device="cpu", build_timeout=50, call_timeout=5), lease)
    with load.lease(), lease.exclusive():  # whoever is timed does not wait for a compiler
        pass
    with calls.lease():
        assert not lease.wanted() and not _free(lease, 0.3)
    with count.lease():
        assert lease.wanted()
    assert _free(lease) and (load.to, calls.to, count.to) == (calls.past, count.past, "")
    assert 50 < load.seconds <= 150 and calls.seconds == 20 and count.seconds == 30


def _free(lease: Lease, seconds: float = 20.0) -> bool:
    taken = threading.Event()

    def take() -> None:
        with lease.exclusive():
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(seconds)


@pytest.mark.parametrize(("code", "limits", "why"), [
    (SLEEPS, {"load": 6.0}, "loading took longer than 6 s"),
    (MODEL.replace("return x.relu()", SLEEPS), {"calls": 2.0}, "calling took longer than 2 s"),
    (MODEL.replace("return x.relu()", "time.sleep(99 if self.calls > 2 else 0); return x"), {"count": 2.0},
     "counting took longer than 2 s"),
    (f"{FAKES}\n{SLEEPS}", {"count": 2.0}, "counting took longer than 2 s"),  # it says that it has come to the call
])  # fmt: skip
def test_one_that_never_comes_to_the_next_point_is_dead_before_others_have_the_device(
    start, code: str, limits: dict[str, float], why: str
) -> None:
    target = start(code)
    leases = Leases(target.worker)
    began = time.monotonic()
    assert run_parts(target, leases.parts(**limits)) == why
    assert time.monotonic() - began < 30
    assert leases.log[-1].endswith("nobody there") and leases.log[-1].split()[0] == leases.log[-2]


KILLS = """
import os
os.kill(int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]), 9)  # who started the tool
"""


def test_one_that_kills_the_candidate_under_it_leaves_no_lease_held(start) -> None:
    target = start(
        FAKES
        + MODEL.replace(
            'print("CONSTRUCTED", flush=True)', KILLS.strip().replace("\n", "\n        ")
        )
    )
    leases = Leases(target.worker)
    with pytest.raises(Ended):
        run_parts(target, leases.parts())
    assert leases.log[-1].endswith("back, nobody there")


TICKS = """
def tick():
    while True:
        print("TICK", time.monotonic(), flush=True)
        time.sleep(0.05)
threading.Thread(target=tick, daemon=True).start()
"""


def test_all_of_it_stands_still_while_a_lease_is_waited_for(start) -> None:
    target = start(MODEL.replace("class", TICKS + "class", 1))
    ran = run_parts(target, Leases(target.worker, wait=1.0).parts())
    assert isinstance(ran, Ran)
    ticks = [float(line.split()[1]) for line in ran.output.split("\n") if line.startswith("TICK")]
    gaps = [after - before for before, after in pairwise(ticks) if after - before > 0.9]
    assert len(gaps) == 2  # before it is constructed, and before the call that is counted


def fake_tool(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, code: str, call_timeout: float = 60.0
) -> Outside:
    monkeypatch.setattr(Outside, "_tool", lambda self, name: "ncu")
    monkeypatch.setattr(
        ncu,
        "command",
        lambda tool, report, target, missing=(): [sys.executable, "-c", TOOL, *target],
    )
    monkeypatch.setattr(ncu, "show", lambda tool, report, page: [sys.executable, "-c", PAGES, page])
    monkeypatch.setitem(
        bench.profiler.refusals, "ncu", ""
    )  # tried on a program of ours: the tool works
    monkeypatch.setattr(ncu_session, "prepare", lambda *a: None)
    return Outside(bench, RELU, code, Options(device="cpu", call_timeout=call_timeout), [])


def test_the_whole_of_it_makes_a_digest(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    outside = fake_tool(monkeypatch, bench, MODEL)
    found = outside.ncu()
    assert (
        found is not None
        and found.kernel == "softmax_kernel"
        and [line.line for line in found.lines] == [12, 20]
    )
    assert not outside.notes and _free(bench.lease)


@pytest.mark.parametrize(("code", "why"), [
    ("raise SystemExit(3)", "reported nothing: loading the submission ended early"),
    ("# triton\nraise SystemExit(3)", "did not load as a separate program"),
    (MODEL.replace("return x.relu()", SLEEPS), "constructing and calling it took longer than 4 s"),
])  # fmt: skip
def test_what_goes_wrong_is_a_note(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, code: str, why: str
) -> None:
    outside = fake_tool(monkeypatch, bench, code, call_timeout=1.0)
    assert outside.ncu() is None
    (note,) = outside.notes
    assert why in note and _free(bench.lease)


def test_the_next_program_is_begun_ahead_stands_still_and_is_used_once(
    monkeypatch, bench: Bench
) -> None:
    prepare = ncu_session.prepare
    outside = fake_tool(monkeypatch, bench, MODEL)
    monkeypatch.setattr(ncu_session, "prepare", prepare)
    assert outside.ncu() is not None
    with bench.profiler.beginning:  # whoever needs one meanwhile waits for this one
        assert bench.profiler.has_begun
        kept = bench.profiler.take()
    assert kept is not None and not bench.profiler.has_begun
    states = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][1]
        for pid in descendants(kept[0].pid)
    ]
    assert len(states) == 3 and set(states) <= set("Tt")  # the candidate, the tool, the program
    bench.profiler.keep(*kept)
    monkeypatch.setattr(
        bench.candidates, "take_for_tools", lambda: pytest.fail("another was begun")
    )
    outside = fake_tool(monkeypatch, bench, MODEL)
    assert outside.ncu() is not None and not outside.notes
    assert bench.profiler.take() is None and not any(descendants(kept[0].pid))


@pytest.mark.parametrize("dead", [False, True])
def test_one_that_does_not_fit_or_has_died_is_not_used(
    monkeypatch, bench: Bench, dead: bool
) -> None:
    worker = bench.candidates.take_for_tools()
    if dead:
        worker.end("a test")
    bench.profiler.keep(worker, frozenset() if dead else frozenset({"another"}))
    assert fake_tool(monkeypatch, bench, MODEL).ncu() is not None
    assert not any(descendants(worker.pid))


def test_a_tool_that_cannot_be_started_leaves_no_candidate(monkeypatch, bench: Bench) -> None:
    outside, taken = fake_tool(monkeypatch, bench, MODEL), []
    take = bench.candidates.take_for_tools
    monkeypatch.setattr(
        bench.candidates, "take_for_tools", lambda: (taken.append(take()), taken[-1])[1]
    )
    monkeypatch.setattr(ncu, "command", lambda *given: ["/nowhere/ncu"])
    with pytest.raises(Failed):
        outside.ncu()
    assert len(taken) == 1 and not any(descendants(taken[0].pid))


def a_look(sessions: int) -> Look:
    """On a device with room for so many submissions that are timed."""
    bench = SimpleNamespace(device=torch.device("cpu"), capacity=SimpleNamespace(sessions=sessions))
    return Look(bench, RELU, MODEL, Options(device="cpu", profile="ncu"))  # type: ignore[arg-type]


def test_where_there_is_room_for_one_only_the_looks_are_taken_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    def take(where: str) -> None:
        steps.append(where)
        time.sleep(0.1)
        steps.append(where)

    monkeypatch.setattr(Look, "_inside", lambda self: take("inside"))
    monkeypatch.setattr(Outside, "ncu", lambda self: take("outside"))
    a_look(1).at(Correct(kind="timed", message=""))
    assert steps == ["outside", "outside", "inside", "inside"]
