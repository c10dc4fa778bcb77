"""A submission that hangs or is slow costs others little, and is not judged again for what it did
itself.
"""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Limits
from kevin_env.judge.job import Allowance, Cancellation, Cancelled
from kevin_env.judge.judge import Judge
from kevin_env.judge.workers.usage import Ran, starved
from kevin_env.problem import Problem, load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = """
import time
import torch
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.softmax(x, dim=1)
"""


def judged(
    judge: Judge, before: str, problem: Problem = SOFTMAX, **more
) -> tuple[Judgement, list[str]]:
    """The judgement of a right answer that does something before each call, and its stages."""
    stages: list[str] = []
    code = RIGHT.replace("return", f"{before}; return")
    return judge.judge(
        problem, Submission(code=code), Options(device="cpu", **more), stages.append
    ), stages


def test_limits_follow_from_the_reference_unless_they_are_given() -> None:
    assert Options().limits(1e-3).model_dump() == {"build": 300.0, "first": 32.0, "call": 2.0}
    assert Options().limits(0.1).call == pytest.approx(20.0)
    given = Options(call_timeout=5.0, build_timeout=9.0).limits(0.1)
    assert given.model_dump() == {"build": 9.0, "first": 5.0, "call": 5.0}
    interpreted = Options().limits(1e-3, interpreted=True)
    assert interpreted.model_dump() == {"build": 300.0, "first": 122.0, "call": 122.0}


@pytest.mark.full
def test_only_the_first_call_in_a_case_may_take_longer_than_the_limit(judge: Judge) -> None:
    slow_once, _ = judged(judge, "self.calls == 1 and compute(3)")
    assert slow_once.outcome.category == "correct"
    hung, stages = judged(judge, "self.calls == 2 and compute(99)")
    assert hung.outcome.kind == "timeout"
    found = re.fullmatch(
        r"one call of ModelNew took longer than (\S+) s \(stopped at line 6\): slow code, .*",
        hung.outcome.message,
    )
    # it is more than 2 s where the reference was slow, too, and less than that of a first call
    assert found is not None and 2 <= float(found[1]) < 32
    assert stages.count("build") == 1


def test_where_tritons_interpreter_runs_every_call_has_as_long_as_a_first_one(judge: Judge) -> None:
    slow, _ = judged(judge, "import triton; self.calls == 2 and compute(3)")
    assert slow.outcome.category == "correct"


@pytest.mark.full
def test_one_that_sleeps_has_ten_times_as_long(judge: Judge) -> None:
    rests, _ = judged(judge, "self.calls == 2 and time.sleep(3)", call_timeout=0.6)
    assert rests.outcome.category == "correct"
    sleeps, _ = judged(judge, "self.calls == 2 and time.sleep(99)", call_timeout=0.3)
    assert sleeps.outcome.kind == "timeout"


@pytest.mark.parametrize(("call", "asleep"), [(0.3, 3.0), (2.0, 20.0), (10.0, 20.0), (40.0, 40.0)])
def test_one_that_sleeps_is_ended_after_20_s_at_the_latest_unless_a_call_may_take_longer(
    call: float, asleep: float
) -> None:
    limits = Limits(build=300, first=call + 30, call=call)
    worker: Any = SimpleNamespace(charged=0.0)
    for first in (True, False):
        patience = Allowance(on_gpu=False).spent_on(
            lambda given: given, worker, limits, first, print
        )
        assert patience.usual == pytest.approx(asleep)
        assert patience.seconds == (limits.first if first else call)


def test_seconds_without_a_processor_do_not_count_on_a_gpu() -> None:
    before, busy, waiting = Ran(1.0, 1.0), Ran(1.5, 1.0), Ran(1.1, 1.4)
    assert starved(0.5, before, busy) == 0
    assert starved(0.5, before, waiting) == pytest.approx(0.4)
    assert starved(0.5, before, Ran(1.0, 1.0)) == 0, "whoever sleeps waits for nobody"
    assert starved(0.5, before, Ran(2.0, 40.0)) == 0, (
        "threads that take turns keep a processor busy"
    )
    assert starved(0.5, before, Ran(0.0, 0.0)) == 0, "a compiler has ended"


@pytest.mark.parametrize("hang", ["time.sleep(999)", "[None for _ in iter(int, 1)]"])
def test_others_are_judged_while_one_hangs(judge: Judge, hang: str) -> None:
    """Also where there is one place only; `benchmarks/hang_throughput.py` measures what it costs."""
    hanging, cancellation = threading.Event(), Cancellation()
    code, options = (
        RIGHT.replace("return", f"{hang}; return"),
        Options(device="cpu", call_timeout=999),
    )

    def watch(stage: str) -> None:
        if stage == "verify":
            hanging.set()

    with ThreadPoolExecutor() as threads:
        hung = threads.submit(
            judge.judge, SOFTMAX, Submission(code=code), options, watch, cancellation
        )
        try:
            assert hanging.wait(60)
            others = [threads.submit(judged, judge, "None") for _ in range(2)]
            assert [each.result(120)[0].outcome.category for each in others] == ["correct"] * 2
            assert not hung.done()
        finally:
            cancellation.cancel()
        with pytest.raises(Cancelled):
            hung.result(60)
