"""The handshake of a CPU: who stands still when, and from when to when a call is timed."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate.region import spec_of
from kevin_env.judge.api import JudgeError, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.handshake import handshake
from kevin_env.judge.handshake.claims import Distant, Output, TensorClaim
from kevin_env.judge.handshake.handshake import Answer, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.chain import WARM_SECONDS, GpuHandshake
from kevin_env.judge.workers.errors import Broken, TimedOut
from kevin_env.judge.workers.usage import descendants
from kevin_env.problem import load_problem

CPU = torch.device("cpu")
SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""


@pytest.fixture
def run(bench: Bench) -> Iterator[SubmissionRun]:
    """A real candidate before one case."""
    worker = bench.candidates.take()
    run = SubmissionRun(bench, SOFTMAX, Options(device="cpu"), "00" * 16, worker)
    try:
        run.build(RIGHT)
        run.enter("cpu")
        yield run
    finally:
        run.close()
        bench.candidates.retire(worker)


def test_a_submission_is_admitted_once_to_the_same_regions(run: SubmissionRun) -> None:
    assert not any(run.screening())
    inbox, seconds, worker = run.handshake.inbox, run.seconds, run.worker
    run.enter(run.case.name)
    assert run.handshake.inbox is inbox and run.seconds == seconds and run.worker is worker
    assert run.checked("own")[1] is None


def test_a_submission_stands_still_while_its_inputs_are_written_when_the_clock_is_read_and_while_it_is_looked_at(
    run: SubmissionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, set[str]]] = []

    def note(what: str) -> None:
        places = (Path(f"/proc/{pid}/stat").read_text() for pid in descendants(run.worker.pid))
        seen.append((what, {place.rpartition(")")[2].split()[0] for place in places}))

    def noted(what: str, do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (note(what), do(*given))[1]

    monkeypatch.setattr(
        handshake, "time", SimpleNamespace(perf_counter_ns=noted("clock", time.perf_counter_ns))
    )
    for owner, name in ((Image, "write_to"), (Image, "unchanged_in"), (Distant, "taken")):
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    assert run.checked("own")[1] is None
    before, *seen[:] = seen
    assert (
        before[0] == "clock" and "T" not in before[1]
    )  # from then on whoever runs all the same is timed
    steps = ["write_to", "clock", "clock", "taken", "unchanged_in"]
    assert seen == [(step, {"T"}) for step in steps]
    note("afterwards")
    assert "T" not in seen[-1][1]


class Mapped:
    """Stands where a player's mappings do."""

    def __init__(self, inbox: SharedRegion) -> None:
        self.inbox = inbox

    def next_pass(self) -> None:
        pass

    def resolve(self, claim: TensorClaim) -> Output:
        return Output(claim, torch.zeros(16, dtype=torch.uint8))


def order_of(frame: bytes) -> dict[str, Any]:
    return json.loads(frame[4:])


def called(
    stood_still: bool = True,
    freeze: Callable[[bool], None] = lambda on: None,
    left: bool = False,
    told: Callable[[str], None] = lambda step: None,
    skeleton: Any = None,
) -> Answer:
    """One call of a candidate that gives its input back; arguments as `Worker` has them.

    `left`: whether it is at another handshake; `told`: gets each order when it is sent, and "settled"
    when it was waited for until it ran; `skeleton`: claimed instead of the right one.
    """
    x = torch.ones(4)
    claim = {
        "skeleton": skeleton or {"t": 0},
        "tensors": [{**spec_of(x, 0), "device": "cpu", "in": "outbox"}],
    }
    drawn = handshake.Drawn({"t": 0}, Image([x], CPU), 0)
    regions = SharedRegion(drawn.image.end, CPU), SharedRegion(drawn.image.end, CPU)
    opened = handshake.CpuHandshake(CPU, *regions, 1, x.nbytes)
    worker: Any = SimpleNamespace(
        send=lambda frame, timeout: told(order_of(frame)["order"]),
        answer=lambda timeout: {"claims": [claim]},
        freeze=freeze, stood_still=stood_still, settle=lambda: told("settled"), memory=None,
    )  # fmt: skip
    try:
        player = handshake.Player(worker, Mapped(regions[left]), trusted=False)  # type: ignore[arg-type]
        return opened.call(player, drawn, 1.0)
    finally:
        for region in regions:
            region.close()


def test_a_player_runs_before_its_clock_starts() -> None:
    """Its supervisor may still be letting it go on when it gets its first order."""
    steps = list[str]()
    called(freeze=lambda on: steps.append("stop" if on else "go on"), told=steps.append)
    assert steps[:4] == ["stage", "settled", "stop", "go"]


def test_an_order_is_encoded_before_its_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, encode = list[str](), handshake.encode
    monkeypatch.setattr(
        handshake, "encode", lambda order: (steps.append(order["order"]), encode(order))[1]
    )
    called(freeze=lambda on: steps.append("stop" if on else "go on"))
    assert steps[:3] == ["stage", "go", "stop"]


def test_a_skeleton_that_does_not_fit_its_tensors_is_refused() -> None:
    with pytest.raises(Broken, match="malformed"):
        called(skeleton={"t": 1})


def test_nobody_is_called_at_a_gate_that_it_has_left() -> None:
    """Its memory would be looked for in regions that are gone."""
    with pytest.raises(JudgeError, match="has left"):
        called(left=True)


@pytest.mark.parametrize("stood_still", [True, False])
def test_whoever_ran_on_while_its_inputs_were_written_has_that_time_in_its_call(
    stood_still: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops, now = itertools.count(), [0]
    monkeypatch.setattr(handshake, "time", SimpleNamespace(perf_counter_ns=lambda: now[0]))

    def freeze(on: bool) -> None:
        if on and next(stops) == 0:
            now[0] += 10**8

    assert called(stood_still=stood_still, freeze=freeze).seconds == (0 if stood_still else 0.1)


def test_of_a_call_that_claims_far_more_than_right_answers_not_all_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake, "CLAIMED_SLACK", 0)
    region = SharedRegion(64, CPU)
    opened = handshake.CpuHandshake(
        CPU, region, region, 1, answer_bytes=128 // handshake.CLAIMED_FACTOR
    )
    claim = TensorClaim(device="cpu", dtype="uint8", shape=[64], stride=[1])
    output = Output(claim, torch.zeros(64, dtype=torch.uint8))
    assert [each.flat is not None for each in opened.takeable([output] * 3)] == [True, True, False]
    region.close()


@pytest.mark.parametrize("draws", [True, False])
def test_a_seed_is_told_with_the_call_where_the_reference_draws_and_else_before(
    draws: bool,
) -> None:
    drawn = handshake.Drawn({"t": 0}, Image([torch.ones(4)], CPU), 7, draws=draws)
    told: dict[str, Any] = {}
    region = SharedRegion(drawn.image.end, CPU)
    worker: Any = SimpleNamespace(
        send=lambda frame, timeout: told.update(order_of(frame)),
        answer=lambda timeout: {},
        settle=lambda: 0,
    )
    player = handshake.Player(worker, Mapped(region), trusted=False)  # type: ignore[arg-type]
    handshake.CpuHandshake(CPU, region, region, 1, 16).stage(player, drawn, 1.0)
    assert (told["seed"], handshake.seeds_of([drawn])) == ((None, [7]) if draws else (7, [None]))
    region.close()


@pytest.mark.parametrize(
    ("trusted", "seconds", "error"), [(True, WARM_SECONDS, JudgeError), (False, 2.0, TimedOut)]
)
def test_the_judges_own_processes_in_a_chain_have_a_limit_and_failures_of_their_own(
    trusted: bool, seconds: float, error: type[Exception]
) -> None:
    """A submission's patience is not theirs: what goes wrong with them is never told of the
    submission.
    """
    asked = list[float]()

    def ask(order: str, timeout: float) -> None:
        asked.append(timeout)
        raise TimedOut(timeout)

    worker: Any = SimpleNamespace(ask=ask, freeze=lambda frozen: None)
    player = Player(worker, None, trusted)  # type: ignore[arg-type]
    with pytest.raises(error):
        GpuHandshake._finish(GpuHandshake.__new__(GpuHandshake), player, 2.0)
    assert asked == [seconds]
