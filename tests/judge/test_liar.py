"""A candidate that lies in every kind of answer gets no score, and the judge goes on judging.

Each lie is code that runs at import in the candidate's own process. It finds the runtime there and
rewrites it.
"""

from pathlib import Path

import pytest

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, load_problem

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2
def get_inputs():
    return [torch.randn(8, 64)]
def get_init_inputs():
    return []
"""
HONEST = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2
"""
LIAR = f"""{HONEST}
import json, os, signal, sys, threading, time
frame = sys._getframe()
while type(frame.f_locals.get("self")).__name__ != "Runtime":
    frame = frame.f_back
runtime = frame.f_locals["self"]
Runtime, Channel = type(runtime), type(runtime.channel)
honest_go = Runtime.go

def tensor(**more):
    honest = {{"device": "cpu", "dtype": "float32", "shape": [8, 64], "stride": [64, 1], "in": "outbox", "offset": 0}}
    return {{**honest, **more}}

def claims(*tensors, skeleton={{"t": 0}}, **more):
    return {{"claims": [{{"skeleton": skeleton, "tensors": list(tensors) or [tensor()], **more}}]}}

def go(action):
    Runtime.go = lambda self, seeds: action(self, seeds)

def lie(answer):
    go(lambda s, n: answer)

def say(answer):
    Channel.send = Channel.send_frame = lambda self, *message: raw(json.dumps(answer).encode())

def written(self, **more):
    honest_go(self, [None])
    self.regions["outbox"].tensor(tensor()).copy_(self.held[0])
    return claims(tensor(**more))

def there(t, **more):
    return claims(tensor(**{{"in": "memory", "offset": t.data_ptr(), **more}}))

def raw(body):
    runtime.channel.sock.setblocking(True)
    runtime.channel.sock.sendall(len(body).to_bytes(4, "big") + body)

calls = 0
def later(action, after=5):
    def act(self, seeds):
        global calls
        calls += 1
        return honest_go(self, seeds) if calls <= after else action(self)
    go(act)
"""
PROTOCOL, NOT_WRITTEN = "runtime/protocol", "correctness/not_written"

LIES: dict[str, tuple[str, str]] = {
    # what is not there
    "an outbox that was never written": ("lie(claims())", NOT_WRITTEN),
    "the inbox as the output": ("lie(claims(tensor(**{'in': 'inbox'})))", "correctness/values"),
    "one element for all": ("go(lambda s, n: written(s, stride=[0, 0]))", "correctness/values"),
    "the answer of the first call": (
        "kept = []\ndef act(s, n):\n    honest_go(s, n)\n    kept.append(s.held[0].clone())\n"
        "    s.regions['outbox'].tensor(tensor()).copy_(kept[0])\n    return claims()\ngo(act)",
        "correctness/values",
    ),
    "the memory of the first call": (
        "kept = []\ndef act(s, n):\n    honest_go(s, n)\n    kept.append(s.held[0])\n"
        "    return there(kept[0])\ngo(act)",
        "correctness/values",
    ),
    "memory that it does not have": ("lie(claims(tensor(**{'in': 'memory', 'offset': 4096})))", PROTOCOL),
    "memory at an odd address": (
        "go(lambda s, n: there(s.arguments[0], offset=s.arguments[0].data_ptr() + 1))", PROTOCOL,
    ),
    "more memory than there is anywhere": (
        "go(lambda s, n: there(s.arguments[0], stride=[1 << 50, 1]))", PROTOCOL,
    ),
    # what it is not
    "another shape of its size": ("go(lambda s, n: written(s, shape=[64, 8], stride=[8, 1]))", "correctness/shape"),
    # numbers and words that cannot be
    "a huge offset": ("lie(claims(tensor(offset=1 << 60)))", PROTOCOL),
    # frames
    "two frames": (  # it is seen at the look or at the next order, whichever comes first
        "go(lambda s, n: s.channel.send_frame(honest_go(s, n)) or honest_go(s, n))",
        f"{PROTOCOL} or correctness/early_done",
    ),
    "an answer before it was asked": ("raw(json.dumps(claims()).encode())", PROTOCOL),
    "the same words to every order and no work": ("say(claims()); lie(None)", NOT_WRITTEN),
    "no words to any order": ("say({})", PROTOCOL),
    "the supervisor's words beside its own": ("lie({**claims(), 'ended': 0, 'done': True, 'seconds': 0})", NOT_WRITTEN),
    "a failure that calls itself correct": (
        "lie({'failure': {'kind': 'correct', 'type': 'Correct', 'message': 'timed', 'frames': [], 'output': ''}})",
        "runtime/exception",
    ),
    "silence": ("go(lambda s, n: time.sleep(99))", "runtime/timeout"),
    # time
    "done at once, computed later": (
        "def act(s, n):\n    threading.Timer(0.005, honest_go, (s, n)).start()\n    return claims()\ngo(act)",
        NOT_WRITTEN,
    ),
    "done at once, the rest later": (
        "def act(s, n):\n    x = s.arguments[0].clone()\n    out = s.regions['outbox'].tensor(tensor())\n"
        "    out[0] = torch.tanh(x[0]) * 2\n"
        "    threading.Timer(0.005, lambda: out.copy_(torch.tanh(x) * 2)).start()\n    return claims()\ngo(act)",
        "correctness/early_done",
    ),
    # inputs
    "the output written over the input": (
        "def act(s, n):\n    s.arguments[0].copy_(torch.tanh(s.arguments[0]) * 2)\n"
        "    return claims(tensor(**{'in': 'inbox'}))\ngo(act)",
        "correctness/inputs_changed",
    ),
    "an input changed after its use": (
        "def act(s, n):\n    answer = honest_go(s, n)\n    s.arguments[0].zero_()\n    return answer\ngo(act)",
        "correctness/inputs_changed",
    ),
    "a byte behind the input": (
        "def act(s, n):\n    answer = honest_go(s, n)\n    s.regions['inbox'].bytes[8 * 64 * 4 + 7] = 0\n"
        "    return answer\ngo(act)",
        "correctness/inputs_changed",
    ),
    # the same once it has been found right
    "nothing written any more when it is timed": ("later(lambda s: claims())", "correctness/not_finite"),
    "nonsense when it is timed": ("later(lambda s: {'claims': None})", PROTOCOL),
    "gone when it is timed": ("later(lambda s: os._exit(5))", "runtime/exit"),
    "crashed when it is timed": ("later(lambda s: os.kill(os.getpid(), signal.SIGSEGV))", "runtime/signal"),
    "gone after its last word": (
        "later(lambda s: threading.Timer(0, os._exit, (5,)).start() or honest_go(s, [None]))", "runtime/exit",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    path: Path = tmp_path_factory.mktemp("problem") / "double_tanh.py"
    path.write_text(PROBLEM)
    return load_problem(str(path))


def judged(pool: LocalPool, problem: Problem, code: str) -> Judgement:
    options = Options(device="cpu", call_timeout=2.0, build_timeout=20.0)
    return pool.submit(problem, Submission(code=code), options).result(120)


def test_the_liar_is_right_when_it_tells_no_lie(pool: LocalPool, problem: Problem) -> None:
    assert judged(pool, problem, LIAR).outcome.category == "correct"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name == "silence")) for name in LIES]
)
def test_a_lie_is_no_right_answer(pool: LocalPool, problem: Problem, name: str) -> None:
    code, expected = LIES[name]
    outcome = judged(pool, problem, f"{LIAR}\n{code}\n").outcome
    assert f"{outcome.category}/{outcome.kind}" in expected.split(" or "), outcome


def test_after_all_these_lies_an_honest_submission_is_judged_right(
    pool: LocalPool, problem: Problem
) -> None:
    assert judged(pool, problem, HONEST).outcome.category == "correct"
    wrong = judged(pool, problem, HONEST.replace("* 2", "* 2.001")).outcome
    assert (wrong.category, wrong.kind) == ("correctness", "values")
