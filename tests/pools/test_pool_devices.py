"""Pools over several devices, and the choice between them."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.api import DeviceInfo, OnStage, Sandbox, Seconds
from kevin_env.judge.protocol import Answer as RequestAnswer
from kevin_env.judge.protocol import Request
from kevin_env.outcome import FormatError
from kevin_env.pools.local import REST, TRIES, Balance, LocalPool
from kevin_env.pools.remote import JudgeGone, NoJudge, Remote
from kevin_env.pools.scripted import SCRIPTED_GPU
from kevin_env.problem import Problem, ProblemError

PROBLEM = Problem(id="any", source="", name="any", statement="")


BOTH = Options(device="cuda:0,1")


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kevin_env.judge.api.most_gpus", lambda: 2)


OUTCOME = FormatError(kind="no_code", message="none")


PROTECTED = Sandbox(
    network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
)


Answer = Callable[["Double", dict[str, Any]], Exception | None]
"""What a double says to a request: nothing wrong, or an error."""


class Double(Remote):
    """A judge without a process. `JudgeGone` is its end."""

    def __init__(
        self,
        device: str,
        start: JudgeError | None,
        failing: threading.Barrier,
        answer: Answer,
        kind: str,
    ) -> None:
        self.device, self.start, self.answer, self.alive = device, start, answer, start is None
        self.failing, self.name = failing, kind

    @property
    def info(self) -> DeviceInfo:
        if self.start is not None:
            self.failing.wait()
            raise self.start
        return SCRIPTED_GPU.model_copy(update={"device": self.device, "name": self.name})

    def ask(self, request: Request, on_stage: OnStage | None = None) -> Future[RequestAnswer]:
        future: Future[RequestAnswer] = Future()
        error = self.answer(self, request)
        if error is not None:
            self.alive = not isinstance(error, JudgeGone)
            future.set_exception(error)
            return future
        judgement = Judgement(
            outcome=OUTCOME, seconds=Seconds(), device=self.info, sandbox=PROTECTED, secret="0"
        )
        future.set_result({"judgement": judgement.model_dump(mode="json")})
        return future

    def cancel(self, number: str) -> None:
        pass

    def hang_up(self) -> None:
        self.alive = False

    def close(self) -> None:
        self.alive = False

    def abandon(self) -> None:
        self.alive = False


class Devices:
    """Starts doubles, and remembers which, and what each was asked.

    Args:
        answer: Of every double.
        dead: Devices whose judge does not start.
        failing: Passed by whoever waits for one of these, before it is told so.
        kinds: Names of devices that are not alike.
    """

    failing = threading.Barrier(1)

    def __init__(
        self, answer: Answer = lambda *_: None, dead: set[str] | None = None, **kinds: str
    ) -> None:
        self.answer, self.dead, self.kinds = answer, dead or set(), kinds
        self.started: list[str] = []
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, device: str, **_: Any) -> Double:
        self.started.append(device)
        error = NoJudge(f"no device {device} here") if device in self.dead else None
        return Double(
            device,
            error,
            self.failing,
            self._answer,
            self.kinds.get(device.replace(":", ""), "GPU"),
        )

    def _answer(self, judge: Double, request: dict[str, Any]) -> Exception | None:
        self.asked.append((judge.device, request["alone"]))
        return self.answer(judge, request)


def judged(pool: LocalPool, count: int = 1, options: Options = BOTH) -> list[str]:
    """The devices that judged so many submissions, one after the other."""
    futures = (pool.submit(PROBLEM, Submission(code=""), options) for _ in range(count))
    return [future.result(30).device.device for future in futures]


def test_a_dead_device_is_left_out_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    four = threading.Barrier(4, timeout=30)

    def answer(*_: Any) -> None:
        if len(devices.asked) <= 4:
            four.wait()

    devices = Devices(answer, dead={"cuda:0"})
    devices.failing = threading.Barrier(2, timeout=30)
    with caplog.at_level(logging.WARNING), LocalPool(start=devices) as pool:
        futures = [
            pool.submit(PROBLEM, Submission(code=""), BOTH) for _ in range(4)
        ]  # two get either device
        assert [future.result(30).device.device for future in futures] == ["cuda:1"] * 4
        assert judged(pool, 2) == ["cuda:1"] * 2
        devices.failing = threading.Barrier(1)
        assert pool.device("cuda:0,1").device == "cuda:1"
    assert [record.getMessage() for record in caplog.records] == [
        "cuda:0 is left out while it has no judge: no device cuda:0 here"
    ]


def test_a_request_fails_when_no_device_is_left() -> None:
    devices = Devices(dead={"cuda:0", "cuda:1"})
    with LocalPool(start=devices) as pool, pytest.raises(JudgeError, match="no device cuda:1 here"):
        judged(pool)
    assert devices.started == ["cuda:0", "cuda:1"]


def test_what_a_judge_had_that_went_away_is_judged_elsewhere_and_alone() -> None:
    ends = iter([JudgeGone("the judge process is gone")])
    devices = Devices(lambda *_: next(ends, None))
    with LocalPool(start=devices) as pool:
        assert judged(pool) == ["cuda:1"]
    assert devices.asked == [("cuda:0", False), ("cuda:1", True)]


def test_the_only_device_gets_another_judge() -> None:
    ends = iter([JudgeGone("the judge process is gone")])
    devices = Devices(lambda *_: next(ends, None))
    with LocalPool(start=devices) as pool:
        assert judged(pool, 2, Options(device="cuda:0")) == ["cuda:0"] * 2
    assert devices.started == ["cuda:0"] * 2
    assert devices.asked == [("cuda:0", False), ("cuda:0", True), ("cuda:0", False)]


def test_a_request_that_ends_every_judge_fails() -> None:
    devices = Devices(lambda *_: JudgeGone("the judge process is gone"))
    with (
        LocalPool(start=devices) as pool,
        pytest.raises(JudgeError, match=f"{TRIES} judges died") as caught,
    ):
        judged(pool)
    assert len(devices.asked) == TRIES and not isinstance(caught.value, JudgeGone)


@pytest.mark.parametrize("error", [ProblemError("its reference fails"), JudgeError("no memory")])
def test_an_answer_is_final(error: Exception) -> None:
    devices = Devices(lambda *_: error)
    with LocalPool(start=devices) as pool, pytest.raises(type(error), match=str(error)):
        judged(pool)
    assert len(devices.asked) == 1


def test_devices_have_to_be_alike() -> None:
    asked, told = threading.Event(), threading.Event()

    def wait(judge: Double, request: dict[str, Any]) -> None:
        asked.set()
        told.wait(30)

    with LocalPool(start=Devices(wait, cuda1="another GPU")) as pool:
        first = pool.submit(PROBLEM, Submission(code=""), BOTH)
        assert asked.wait(30)
        with pytest.raises(
            JudgeError, match="cuda:0 is GPU, cuda:1 is another GPU: choose devices of one kind"
        ):
            judged(pool)
        told.set()
        assert first.result(30).device.name == "GPU"


def test_cancelling_ends_the_search_for_a_judge() -> None:
    asked, cancelled = threading.Event(), threading.Event()

    def wait(judge: Double, request: dict[str, Any]) -> Exception:
        asked.set()
        cancelled.wait(30)
        return JudgeGone("the judge process is gone")

    devices = Devices(wait)
    with LocalPool(start=devices) as pool:
        judging = pool.submit(PROBLEM, Submission(code=""), BOTH)
        assert asked.wait(30) and judging.cancel()
        cancelled.set()
    assert devices.asked == [("cuda:0", False)]


TWO = ("cuda:0", "cuda:1")


def test_work_goes_to_the_device_with_the_least() -> None:
    balance = Balance()
    taken = [balance.take(TWO, f"problem {i}") for i in range(6)]
    assert taken.count("cuda:0") == taken.count("cuda:1") == 3
    balance.done("cuda:1")
    balance.done("cuda:1")
    assert balance.take(TWO, "another") == balance.take(TWO, "one more") == "cuda:1"


def test_a_device_whose_judge_fails_rests_while_there_is_another() -> None:
    now = [0.0]
    balance = Balance(clock=lambda: now[0])
    assert balance.take(TWO, "first") == "cuda:0"
    balance.done("cuda:0", failed=True)
    assert [balance.take(TWO, f"{n}") for n in range(3)] == ["cuda:1"] * 3
    assert balance.take(("cuda:0",), "alone") == "cuda:0"
    balance.done("cuda:0")
    now[0] = REST
    assert balance.take(TWO, "later") == "cuda:0"
