"""The handshake of a CPU: who stands still when, and from when to when a call is timed."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate.region import FILLING, POISON, spec_of
from kevin_env.judge.api import JudgeError
from kevin_env.judge.handshake import handshake
from kevin_env.judge.handshake.arena import Arena, Sizes
from kevin_env.judge.handshake.claims import Output, TensorClaim
from kevin_env.judge.handshake.handshake import Answer, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.timing.chain import WARM_SECONDS
from kevin_env.judge.workers.errors import Broken, TimedOut
from kevin_env.problem import load_problem

CPU = torch.device("cpu")
SOFTMAX = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
RIGHT = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""


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
        settle=lambda: told("settled"), memory=None,
    )  # fmt: skip
    try:
        player = handshake.Player(worker, Mapped(regions[left]), False, opened)  # type: ignore[arg-type]
        return opened.call(player, drawn, 1.0)
    finally:
        for region in regions:
            region.close()


def test_what_is_not_the_call_is_done_before_its_clock_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may still be stopped when it gets its first order; orders are encoded, inputs written."""
    steps, encode, write = list[str](), handshake.encode, Image.write_to
    clock = SimpleNamespace(perf_counter_ns=lambda: (steps.append("clock"), 0)[1])
    monkeypatch.setattr(handshake, "time", clock)
    monkeypatch.setattr(
        handshake, "encode", lambda order: (steps.append("encoded"), encode(order))[1]
    )
    monkeypatch.setattr(
        Image, "write_to", lambda *given: (steps.append("written"), write(*given))[1]
    )
    called(told=steps.append)
    assert steps[:3] == ["encoded", "stage", "settled"]
    assert sorted(steps[3:5]) == ["encoded", "written"] and steps[5:] == ["clock", "go", "clock"]


def test_a_skeleton_that_does_not_fit_its_tensors_is_refused() -> None:
    with pytest.raises(Broken, match="malformed"):
        called(skeleton={"t": 1})


def test_nobody_is_called_at_a_gate_that_it_has_left() -> None:
    """Its memory would be looked for in regions that are gone."""
    with pytest.raises(JudgeError, match="has left"):
        called(left=True)


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
    opened = handshake.CpuHandshake(CPU, region, region, 1, 16)
    player = handshake.Player(worker, Mapped(region), False, opened)  # type: ignore[arg-type]
    opened.stage(player, drawn, 1.0)
    assert (told["seed"], handshake.seeds_of([drawn])) == ((None, [7]) if draws else (7, [None]))
    region.close()


def test_answers_are_overwritten_with_another_byte_only_while_what_is_unwritten_is_shown() -> None:
    region = SharedRegion(512, CPU)
    opened = handshake.CpuHandshake(CPU, region, region, 1, 16)
    seen = list[int]()
    with opened.showing_unwritten():
        opened.poison()
        seen.append(int(region.bytes[0]))
    opened.poison()
    assert [*seen, int(region.bytes[0])] == [FILLING, POISON]
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
    with closing(Arena(CPU, Sizes(inputs=1, outputs=1, weights=1), 1)) as home:
        player = Player(worker, None, trusted, home)  # type: ignore[arg-type]
        with pytest.raises(error):
            home._finish(player, 2.0)
    assert asked == [seconds]
