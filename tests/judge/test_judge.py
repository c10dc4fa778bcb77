"""A judgement from the first line of a submission's code to the end of its process."""

import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Player
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.job import Cancellation, Cancelled
from kevin_env.judge.judge import Judge
from kevin_env.judge.timing.session import Crowded
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.errors import OwnProcessKilled
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct
from kevin_env.problem import Problem, load_problem

PROBLEMS = Path(__file__).parent.parent / "submissions" / "problems"
SOFTMAX, LINEAR = (load_problem(str(PROBLEMS / f"{name}.py")) for name in ("softmax", "linear"))
RIGHT = """
import os, time
import torch
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.softmax(x, dim=1)
"""
SECRET = "ab" * 16


def judged(
    judge: Judge, before: str = "None", problem: Problem = SOFTMAX, **more
) -> tuple[Judgement, list[str]]:
    """The judgement of a right answer that does something before each call, and its stages."""
    stages: list[str] = []
    submission = Submission(code=RIGHT.replace("return", f"{before}; return"))
    options = Options(device="cpu", **more)
    return judge.judge(problem, submission, options, stages.append), stages


def states(worker: Worker) -> set[str]:
    """The states of a candidate's processes."""
    found = set[str]()
    for pid in descendants(worker.pid):
        with suppress(OSError):
            found.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
    return found


def test_others_find_a_submission_in_a_long_call_stopped_and_one_that_hung_gone(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, taken, found = judge.bench.candidates.take, list[Worker](), list[set[str]]()
    monkeypatch.setattr(judge.bench.candidates, "take", lambda: taken.append(take()) or taken[-1])
    done = threading.Event()

    def visit() -> None:
        while not done.wait(0.05):
            with judge.bench.lane.entered():
                found.append(states(taken[0]))

    visitor = threading.Thread(target=visit)

    def on_stage(stage: str) -> None:
        if stage == "verify" and not visitor.is_alive():
            visitor.start()

    hangs = Submission(code=RIGHT.replace("return", "self.calls == 2 and time.sleep(99); return"))
    options = Options(device="cpu", call_timeout=0.5)  # ten times as long for one that sleeps
    outcome = judge.judge(SOFTMAX, hangs, options, on_stage).outcome
    done.set()
    visitor.join()
    assert (outcome.category, outcome.kind) == ("runtime", "timeout")
    # one that is about to stop is not asleep any more
    assert len(found) > 2 and {"T"} <= set.union(*found) <= {"T", "R"}


def test_a_submission_whose_calls_are_long_together_has_a_limit(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kevin_env.judge.job.ALL_CALLS", 1)
    outcome = judged(judge, "compute(1.5)", call_timeout=2.0)[0].outcome
    assert (outcome.category, outcome.kind) == ("runtime", "timeout")
    assert outcome.message.startswith("all calls of ModelNew together took longer than 2 s")


def test_a_submission_that_kills_itself_is_judged_again_on_other_inputs(judge: Judge) -> None:
    """A recorded turn that is judged again uses these inputs."""
    tell = "print(x.flatten()[:4].tolist(), flush=True)"
    again, stages = judged(judge, f"{tell}; os.kill(os.getpid(), 9)", secret=SECRET)
    assert again.outcome.kind == "signal" and stages.count("build") == 2 and again.secret != SECRET
    once, recorded = (judged(judge, tell, secret=each)[0] for each in (SECRET, again.secret))
    firsts = [judgement.log.splitlines()[0] for judgement in (once, again, recorded)]
    assert firsts[0] != firsts[1] == firsts[2]


@pytest.mark.parametrize("cause", [OwnProcessKilled, Crowded])
def test_a_submission_that_others_disturbed_is_judged_again(
    a_judge: Callable[..., Judge], cause: type[Exception]
) -> None:
    timed, trials = Correct(kind="timed", message=""), list[weakref.ref[Trial]]()

    def clock(trial: Trial) -> Correct:
        trials.append(weakref.ref(trial))
        if len(trials) == 1:
            raise cause("others")
        assert trials[0]() is None  # the memory of the first try may be what is lacking
        return timed

    judgement, stages = judged(a_judge(clock=clock))
    assert judgement.outcome == timed and stages.count("build") == 2 and len(trials) == 2


@pytest.mark.parametrize("wrong", ["x", "2 * x"])
def test_a_process_that_is_killed_after_its_report_is_no_verdict(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    take, taken = judge.bench.candidates.take, list[Worker]()
    monkeypatch.setattr(judge.bench.candidates, "take", lambda: taken.append(take()) or taken[-1])
    step, kind = ("unchanged_in", Image) if wrong == "x" else ("changed_since", Answer)
    before, killed = getattr(kind, step), list[int]()

    def killing(*given: object) -> bool:
        if not killed:  # its outputs are read next, or compared with the copy
            killed.extend(descendants(taken[0].pid))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            while states(taken[0]):
                time.sleep(0.001)
        return before(*given)

    monkeypatch.setattr(kind, step, killing)
    judgement, stages = judged(judge, f"x = {wrong}")
    assert judgement.outcome.category == ("correct" if wrong == "x" else "correctness")
    assert judgement.outcome.kind != "early_done" and stages.count("build") == 2


@pytest.mark.parametrize("stage", ["queue", "build", "verify", "time"])
def test_a_cancelled_judgement_ends_and_is_not_repeated(judge: Judge, stage: str) -> None:
    cancellation, stages = Cancellation(), list[str]()

    def on_stage(begun: str) -> None:
        stages.append(begun)
        if begun == stage:
            cancellation.cancel()

    options = Options(device="cpu")
    with pytest.raises(Cancelled):
        judge.judge(SOFTMAX, Submission(code=RIGHT), options, on_stage, cancellation)
    assert stages.count("build") == (stage != "queue")
    assert judged(judge)[0].outcome.category == "correct"


def test_every_call_is_verified_those_that_are_timed_too(judge: Judge) -> None:
    right, _ = judged(judge, "print('called', flush=True)", rules="open", secret=SECRET)
    calls = right.log.count("called")
    assert right.outcome.category == "correct" and calls > 5
    # of the timed case: it is constructed again in each, and counts from there
    for number in (1, 2, calls - 5, calls - 4, calls - 3):
        wrong, _ = judged(judge, f"x = x + x * (self.calls == {number})", secret=SECRET)
        assert wrong.outcome.category == "correctness", f"call {number} of {calls}"


def test_a_submission_sees_no_input_twice(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int, bytes]] = []
    call = CpuHandshake.call

    def calling(handshake: CpuHandshake, player: Player, drawn: Drawn, *given) -> Answer:
        if not player.trusted:
            shown.append((drawn.input_set, drawn.seed, drawn.image.bytes.numpy().tobytes()))
        return call(handshake, player, drawn, *given)

    monkeypatch.setattr(CpuHandshake, "call", calling)
    assert judged(judge)[0].outcome.category == "correct"
    names, seeds, inputs = map(list, zip(*shown, strict=True))
    assert names.count("cpu/own") >= 2
    assert len(set(inputs)) == len(set(seeds)) == len(names)


def test_inputs_and_weights_follow_from_the_secret_and_differ_between_draws(judge: Judge) -> None:
    """So that none can be written into a submission after an earlier turn."""
    lent: list[torch.Tensor] = []

    def drawn(secret: str) -> list[torch.Tensor]:
        options = Options(device="cpu")
        with judge.bench.candidates.candidate() as worker:
            trial = Trial(judge.bench, LINEAR, options, secret, worker)
            trial.build("from torch.nn import Linear\nclass ModelNew(Linear): pass")
            trial.open()
            trial.enter(trial.cases[-1])
            lent.append(torch.cat([each.flatten() for each in trial.case.state().values()]))
            sets = [trial.draw("own").image.tensors[0] for _ in range(2)]
            trial.close()
        return sets

    one, same, other = drawn(SECRET), drawn(SECRET), drawn("cd" * 16)
    assert all(map(torch.equal, one, same)) and torch.equal(lent[0], lent[1])
    assert not torch.equal(one[0], other[0]) and not torch.equal(lent[0], lent[2])
    assert not torch.equal(one[0], one[1])


@pytest.mark.full
def test_a_much_slower_submission_is_called_on_five_sets_and_twice_timed(
    a_judge: Callable[..., Judge],
) -> None:
    judge = a_judge(Pace(pairs=(2, 2), seconds=99.0, sets=9))
    judgement, _ = judged(judge, "print('called', flush=True); time.sleep(0.9)")
    outcome = judgement.outcome
    assert outcome.category == "correct" and outcome.speedup is not None and outcome.speedup < 0.1
    # three sets of each of two cases, two pairs, a call on other inputs among them, and one more
    # to count threads
    assert 5 + 2 + 1 <= judgement.log.count("called") <= 2 * 3 + 2 + 1 + 1


@pytest.mark.full
def test_an_error_of_a_compiler_names_the_submissions_line(judge: Judge) -> None:
    code = '''import torch
from torch.utils.cpp_extension import load_inline
SOURCE = """
torch::Tensor softmax(torch::Tensor x) {
    for (int i = 0; i < 9; ++i) x.data_ptr<float>()[i] = undefined_name;
    return x;
}
"""
module = load_inline("m", SOURCE, functions=["softmax"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.softmax(x)
'''
    options = Options(device="cpu", rules="open")
    outcome = judge.judge(SOFTMAX, Submission(code=code), options, lambda _: None).outcome
    assert (outcome.kind, outcome.line) == ("compiler", 5), outcome
