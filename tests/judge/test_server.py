"""The judge's end of the line, with a double in the judge's place."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from corpus import FOLDER

from kevin_env.candidate.wire import Channel, Closed
from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.api import Sandbox, Seconds
from kevin_env.judge.inputs.facts import FactStore
from kevin_env.judge.server import THREADS, Server
from kevin_env.outcome import FormatError
from kevin_env.pools.scripted import SCRIPTED_CPU
from kevin_env.problem import Problem, ProblemError, load_problem

SOFTMAX = load_problem(str(FOLDER / "problems/softmax.py"))
ASSERT = "CUDA error: device-side assert triggered"
JUDGEMENT = Judgement(
    outcome=FormatError(kind="no_code", message="none"),
    seconds=Seconds(),
    device=SCRIPTED_CPU,
    sandbox=Sandbox(
        network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
    ),
    secret="0",
)


class Double:
    """Judges by a submission's code: `hold` waits; `sick` loses the context, which the judge
    notices in `crash`.
    """

    device = torch.device("cpu")
    info = SCRIPTED_CPU

    def __init__(self) -> None:
        self.prepared = list[str]()
        facts_of = FactStore(self.device, self.info).of
        self.bench = SimpleNamespace(facts_of=facts_of, prepare=self.prepared.append)
        self.lost = False
        self.free = threading.Event()
        self.running = threading.Semaphore(0)

    def judge(self, problem: Problem, submission: Submission, *_: Any) -> Judgement:
        if submission.code == "hold":
            self.running.release()
            self.free.wait(30)
        self.lost = self.lost or submission.code in ("sick", "crash")
        if submission.code == "crash":
            raise RuntimeError(ASSERT)
        if self.lost:
            raise ProblemError(f"{problem.id}: its reference fails in forward: {ASSERT}")
        return JUDGEMENT

    def verify_baseline(self, *_: Any) -> None:
        pass

    def trouble(self) -> str | None:
        return ASSERT if self.lost else None

    def enter_thread(self) -> None:
        pass

    def close(self) -> None:
        self.free.set()


class Client:
    """Says what a pool would say."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.number = 0

    def ask(self, do: str = "judge", code: str = "", alone: bool = False) -> int:
        self.number += 1
        what = {
            "do": do,
            "problem": SOFTMAX.model_dump(),
            "options": Options(device="cpu", language="helion").model_dump(),
        }
        submission = Submission(code=code).model_dump()
        self.channel.send({"id": self.number, "alone": alone, "submission": submission, **what})
        return self.number

    def answer(self) -> dict[str, Any]:
        while "beat" in (answer := self.channel.receive(30)):
            pass
        return answer


@contextmanager
def serving(double: Double, beat: float = 60.0) -> Iterator[Client]:
    ours, theirs = socket.socketpair()
    server = Server(Channel(theirs), lambda *_: cast(Any, double))
    thread = threading.Thread(target=server.serve)
    thread.start()
    client = Client(Channel(ours))
    client.channel.send({"device": "cpu", "pace": None, "memory": None, "beat": beat})
    try:
        assert client.channel.receive(30)["device"]["name"] == SCRIPTED_CPU.name
        yield client
    finally:
        double.free.set()
        ours.close()
        thread.join(30)
        theirs.close()


def test_a_prompt_does_not_wait_for_judgements() -> None:
    double = Double()
    with serving(double) as client:
        for _ in range(2 * THREADS):
            client.ask(code="hold")
        for _ in range(THREADS):
            assert double.running.acquire(timeout=30)
        number = client.ask("describe")
        answer = client.answer()
        assert answer["id"] == number and answer["facts"]["cases"]
        assert double.prepared == ["helion"]


def test_a_judge_whose_context_is_lost_answers_nothing_more(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving(Double()) as client:
        client.ask(code="sick")
        with pytest.raises(Closed):
            client.answer()
    assert ASSERT in capfd.readouterr().err


def test_no_request_is_answered_from_a_context_that_another_lost() -> None:
    double = Double()
    with serving(double) as client:
        client.ask(code="hold")
        assert double.running.acquire(timeout=30)
        double.lost = True
        double.free.set()
        with pytest.raises(Closed):
            client.answer()


@pytest.mark.parametrize("code", ["sick", "crash"])
def test_a_request_that_loses_the_context_alone_gets_the_reason(code: str) -> None:
    with serving(Double()) as client:
        number = client.ask(code=code, alone=True)
        answer = client.answer()
        assert answer["id"] == number and answer["problem_error"].startswith(
            "softmax: its reference fails"
        )
        assert ASSERT in answer["problem_error"]
        with pytest.raises(Closed):
            client.answer()


def test_a_request_judged_alone_waits_for_the_others() -> None:
    double = Double()
    with serving(double) as client:
        others = {client.ask(code="hold") for _ in range(3)}
        for _ in others:
            assert double.running.acquire(timeout=30)
        alone = client.ask(code="", alone=True)
        double.free.set()
        answers = [client.answer()["id"] for _ in range(4)]
        assert set(answers[:3]) == others and answers[3] == alone


def test_a_lost_context_is_noticed_while_nothing_is_judged() -> None:
    double = Double()
    with serving(double, beat=0.01) as client:
        assert client.channel.receive(30) == {"beat": True}
        double.lost = True
        with pytest.raises(Closed):
            client.answer()


def test_a_judge_that_does_not_start_says_why() -> None:
    ours, theirs = socket.socketpair()

    def start(*_: Any) -> Any:
        raise JudgeError("no device cuda:7 here")

    Channel(ours).send({"device": "cuda:7", "pace": None, "memory": None, "beat": 60.0})
    Server(Channel(theirs), start).serve()
    assert Channel(ours).receive(30) == {"fatal": "no device cuda:7 here"}
    ours.close()
    theirs.close()
