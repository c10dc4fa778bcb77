"""Nsight Compute around a submission: real candidates on the CPU, and a tool that only runs its
program.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from corpus import FOLDER
from test_ncu import SOFTMAX, SOURCE, raw

from kevin_env.judge import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.lane import Lane
from kevin_env.judge.workers.errors import Failed
from kevin_env.judge.workers.usage import descendants
from kevin_env.problem import load_problem
from kevin_env.profile import ncu, outside
from kevin_env.profile.outside import Outside

pytestmark = pytest.mark.full
RELU = load_problem(str(FOLDER / "problems" / "relu.py"))
TOOL = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
"""Starts its program, as Nsight Compute does, and counts nothing."""
PAGES = f"import sys; print({{'raw': {raw(SOFTMAX)!r}, 'source': {SOURCE!r}}}[sys.argv[1]])"
MODEL = """
import sys, time, torch
class ModelNew(torch.nn.Module):
    def __init__(self, *sizes):
        super().__init__()
    def forward(self, x):
        return x.relu()
"""
SLEEPS = "time.sleep(99); return x"


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
    return Outside(bench, RELU, code, Options(device="cpu", call_timeout=call_timeout), [])


def free(lane: Lane) -> bool:
    taken = threading.Event()

    def take() -> None:
        with lane.entered():
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(20)


def taken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of the candidates that are taken for tools from here on."""
    pids, take = list[int](), bench.candidates.take_for_tools

    def noted():
        worker = take()
        pids.append(worker.pid)
        return worker

    monkeypatch.setattr(bench.candidates, "take_for_tools", noted)
    return pids


def test_the_whole_of_it_makes_a_digest(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    it, pids = fake_tool(monkeypatch, bench, MODEL), taken(bench, monkeypatch)
    found = it.ncu()
    assert found is not None and found.kernel == "softmax_kernel"
    assert [line.line for line in found.lines] == [12, 20] and not it.notes
    assert free(bench.lane) and not any(descendants(pids[0]))


def left_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch, pids: list[int]) -> list[bool]:
    """Whether a candidate was there each time when the lane was left."""
    left, entered = list[bool](), bench.lane.entered

    @contextmanager
    def noted() -> Iterator[None]:
        with entered():
            try:
                yield
            finally:
                left.append(any(descendants(pids[0])))

    monkeypatch.setattr(bench.lane, "entered", noted)
    return left


HANGS_UNDER_THE_TOOL = MODEL.replace(
    "return x.relu()",
    """if sys.argv[-1].endswith("files"):  # a program of its own: its folder is the last argument
            time.sleep(99)
        return x.relu()""",
)


@pytest.mark.parametrize(("code", "why"), [
    ("raise SystemExit(3)", "does not run as a separate program"),
    (MODEL.replace("return x.relu()", SLEEPS), "does not run as a separate program"),
    (HANGS_UNDER_THE_TOOL, "reported nothing: it took longer than 4 s"),
])  # fmt: skip
def test_what_goes_wrong_is_a_note_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, code: str, why: str
) -> None:
    monkeypatch.setattr(outside, "NCU_SECONDS", 4.0)
    it, pids = fake_tool(monkeypatch, bench, code, call_timeout=1.0), taken(bench, monkeypatch)
    left = left_behind(bench, monkeypatch, pids)
    assert it.ncu() is None
    # it is there after its inputs were written, and after its rehearsal
    assert not any(left[2:]), "one that hangs is dead before others have the device"
    (note,) = it.notes
    assert why in note and free(bench.lane) and not any(descendants(pids[0]))


def test_a_tool_that_cannot_be_started_leaves_no_candidate(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    it, pids = fake_tool(monkeypatch, bench, MODEL), taken(bench, monkeypatch)
    monkeypatch.setattr(ncu, "command", lambda *given: ["/nowhere/ncu"])
    with pytest.raises(Failed):
        it.ncu()
    assert len(pids) == 1 and not any(descendants(pids[0])) and free(bench.lane)
