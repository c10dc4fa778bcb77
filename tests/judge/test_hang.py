"""A submission that hangs or is slow costs others little, and is not judged again for what it did itself."""

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from loaded import Submit

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import CALL_MULTIPLE, LOADING_SECONDS
from kevin_env.judge.facts import find_facts
from kevin_env.judge.faults import Faults
from kevin_env.judge.judge import Judge
from kevin_env.judge.pace import PACES
from kevin_env.judge.patience import Patience, Ran, starved
from kevin_env.judge.trouble import TimedOut
from kevin_env.problem import load_problem

SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = """
import time
import torch
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.softmax(x, dim=1)
"""
OTHERS, MOST = 9, 1.1


def judged(judge: Judge, before: str, **more) -> tuple[Judgement, list[str]]:
    """The judgement of a right answer that does something before each call, and its stages."""
    stages: list[str] = []
    code = RIGHT.replace("return", f"{before}; return")
    return judge.judge(SOFTMAX, Submission(code=code), Options(device="cpu", **more), stages.append), stages


def test_limits_follow_from_the_reference_unless_they_are_given() -> None:
    assert Options().limits(1e-3).model_dump() == {"build": 300.0, "first": 32.0, "call": 2.0}
    assert Options().limits(0.1).call == pytest.approx(20.0)
    given = Options(call_timeout=5.0, build_timeout=9.0).limits(0.1)
    assert given.model_dump() == {"build": 9.0, "first": 5.0, "call": 5.0}


def test_the_prompt_knows_the_limits(judge: Judge) -> None:
    for options in (Options(), Options(call_timeout=5.0, build_timeout=9.0)):
        found = find_facts(SOFTMAX, judge.device, judge.info, options).limits
        assert found == options.limits(found.call / CALL_MULTIPLE) and found.call < 20


def test_only_the_first_call_in_a_case_may_take_longer_than_the_limit(judge: Judge) -> None:
    slow_once, _ = judged(judge, "self.calls == 1 and time.sleep(2.5)")
    assert slow_once.outcome.category == "correct"
    hung, stages = judged(judge, "self.calls == 2 and time.sleep(99)")
    assert hung.outcome.kind == "timeout"
    found = re.fullmatch(r"one call of ModelNew took longer than (\S+) s \(stopped at line 8\)", hung.outcome.message)
    assert found is not None and 2 <= float(found[1]) < 20  # it is more than 2 s where the reference was slow, too
    assert stages.count("build") == 1 and hung.seconds.verify < float(found[1]) + 4


def test_a_hang_in_the_first_call_costs_far_less_than_compiling_may_take(judge: Judge) -> None:
    hung, stages = judged(judge, "time.sleep(99)")
    assert hung.outcome.kind == "timeout" and hung.outcome.line == 8
    limits = find_facts(SOFTMAX, judge.device, judge.info, Options(device="cpu")).limits
    assert stages.count("build") == 1 and hung.seconds.load + hung.seconds.verify < limits.call + LOADING_SECONDS + 4


@pytest.mark.parametrize("idle", [True, False])
def test_a_hang_is_judged_once_whoever_is_there(judge: Judge, monkeypatch: pytest.MonkeyPatch, idle: bool) -> None:
    monkeypatch.setattr(judge.bench.lease, "idle", lambda: idle)
    judgement, stages = judged(judge, "time.sleep(99)", call_timeout=0.7)
    assert judgement.outcome.kind == "timeout" and stages.count("build") == 1


def test_seconds_without_a_processor_do_not_count() -> None:
    before, busy, waiting = Ran(1.0, 1.0), Ran(1.5, 1.0), Ran(1.1, 1.4)
    assert starved(0.5, before, busy) == 0
    assert starved(0.5, before, waiting) == pytest.approx(0.4)
    assert starved(0.5, before, Ran(1.0, 1.0)) == 0, "whoever sleeps waits for nobody"
    assert starved(0.5, before, Ran(2.0, 40.0)) == 0, "threads that take turns keep a processor busy"
    assert starved(0.5, before, Ran(0.0, 0.0)) == 0, "a compiler has ended"


@pytest.mark.parametrize(
    ("step", "seconds"),
    [("time.sleep(9)", 0.5), ("torch.zeros(1).map_(torch.zeros(1), lambda *_: time.sleep(9))", 0.5),
     ("subprocess.run(['sleep', '9'])", 2.0)],
)  # fmt: skip
def test_a_first_call_that_compiles_nothing_gets_little_more_than_a_later_one(
    submit: Submit, step: str, seconds: float
) -> None:
    code = f"""
import subprocess, time, torch
from kevin_env.candidate import runtime
def go(self, count):
    {step}
runtime.Runtime.go = go
"""
    ran, start = submit(code), time.monotonic()
    with pytest.raises(TimedOut) as late:
        ran.worker.ask("go", Patience(2.0, 0.5), count=1)
    assert late.value.seconds == seconds <= time.monotonic() - start < seconds + 1
    assert ran.worker.fault_line == 5


@pytest.mark.parametrize(
    ("innermost", "compiles"),
    [
        ([("/s/submission.py", "forward"), ("/x/torch/nn/modules/module.py", "_call_impl")], False),
        ([("/x/torch/cuda/__init__.py", "synchronize"), ("/s/submission.py", "forward")], False),
        ([("/x/triton/compiler/compiler.py", "_init_handles"), ("/x/triton/runtime/jit.py", "run")], False),
        ([("/x/triton/compiler/compiler.py", "compile"), ("/x/triton/runtime/jit.py", "run")], True),
        ([("/x/torch/cuda/__init__.py", "synchronize"), ("/x/triton/testing.py", "do_bench")], True),
        ([("/x/torch/_inductor/compile_fx.py", "compile_fx"), ("/s/submission.py", "forward")], True),
        ([("<frozen importlib._bootstrap>", "_find_and_load"), ("/s/submission.py", "forward")], True),
        ([], False),
    ],
)
def test_what_a_call_does_is_told_by_the_files_on_its_stack(innermost: list[tuple[str, str]], compiles: bool) -> None:
    faults, loop = Faults("/s/submission.py"), ("/x/kevin_env/candidate/runtime.py", "serve")
    with os.fdopen(faults.writer, "w") as writer:
        writer.write(
            'Thread 0x1 (most recent call first):\n  File "/other.py", line 1 in wait\n\nCurrent thread 0x2:\n'
        )
        writer.writelines(
            f'  File "{path}", line 7 in {name}\n' for path, name in [*innermost, loop, ("/k.py", "keep")]
        )
    assert faults.compiles(1.0) is compiles
    assert faults.line() is None, "a crash later on would be put where the call was"
    faults.close()


def test_a_much_slower_submission_is_called_as_often_as_it_takes_to_tell_that(
    a_judge: Callable[..., Judge],
) -> None:
    judge = a_judge(PACES["cpu"].model_copy(update={"seconds": 1.0}))
    judgement, _ = judged(judge, "print('called', flush=True); time.sleep(0.6)")
    outcome = judgement.outcome
    assert outcome.category == "correct" and outcome.speedup is not None and outcome.speedup < 0.1
    # two input sets of each of two cases at least, two pairs, and one call for its threads
    assert judgement.log.count("called") <= 2 * 4 + 4


@pytest.mark.full
def test_one_hang_among_ten_costs_the_others_less_than_a_tenth(a_judge: Callable[..., Judge]) -> None:
    """Beyond its share, which is what the tenth takes when it is right; that is measured before and after."""
    judge, seconds = a_judge(PACES["cpu"]), list[float]()
    tenths = ("None", "time.sleep(99)", "[None for _ in iter(int, 1)]", "None")
    for tenth in tenths:
        with ThreadPoolExecutor(OTHERS + 1) as threads:
            start = time.monotonic()
            last = threads.submit(judged, judge, tenth)
            others = [threads.submit(judged, judge, "None") for _ in range(OTHERS)]
            wait([*others, last] if tenth == "None" else others)
            seconds.append(time.monotonic() - start)
            assert all(each.result()[0].outcome.category == "correct" for each in others)
            assert (last.result()[0].outcome.kind == "timeout") is (tenth != "None")
    assert max(seconds[1:3]) < MOST * max(seconds[0], seconds[3]), dict(zip(tenths, seconds, strict=True))
