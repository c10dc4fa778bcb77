"""The process that plays recorded submissions: what it is asked for, and when it is replaced."""

from typing import Any

import pytest
import torch

from kevin_env.candidate.region import Region
from kevin_env.judge.handshake.arena import Sizes
from kevin_env.judge.precompile import Recording, Shapes, precompile
from kevin_env.judge.replayer import RENEWED, Replayer
from kevin_env.judge.workers.errors import Broken, Failed, Failure
from kevin_env.rules.recorded import Operation, Record, violation

CPU = torch.device("cpu")
SMALL, LARGE = Sizes(1 << 20, 1 << 20, 1 << 20), Sizes(20 << 20, 1 << 20, 1 << 20)
FAILED = Failure(kind="exception", type="CudaError", message="no", frames=[], output="")


class Process:
    """Stands where a worker does.

    Attributes:
        orders: What it was asked for.
        waiting: Whether it is alive.
        fails: The order that it fails at.
        trims: Whether it frees memory when it is cleared.
    """

    memory = None

    def __init__(self) -> None:
        self.orders = list[str]()
        self.waiting, self.fails, self.trims = True, "", False

    def ask(self, order: str, timeout: float, **_: Any) -> dict[str, Any]:
        self.orders.append(order)
        if order == self.fails:
            raise Failed(FAILED)
        return {"trimmed": self.trims} if order == "clear" else {}

    def answers_within(self, _: float) -> bool:
        return not self.waiting

    def close(self) -> None:
        self.waiting = False


class Started:
    """All processes that a replayer has started."""

    def __init__(self) -> None:
        self.processes = list[Process]()

    def __call__(self) -> Any:
        self.processes.append(Process())
        return self.processes[-1]

    @property
    def orders(self) -> list[str]:
        """What they were asked for since the last time."""
        orders = [order for each in self.processes for order in each.orders]
        for each in self.processes:
            each.orders.clear()
        return orders


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
def replayer(started: Started) -> Any:
    replayer = Replayer(started, CPU, l2=1)
    yield replayer
    replayer.end()
    assert not any(each.waiting for each in started.processes)


def play(replayer: Replayer, sizes: Sizes = SMALL) -> Any:
    worker, arena, player = replayer.load(Recording({}, {}), sizes)
    assert player.worker is worker and not player.trusted and player.home is arena
    replayer.clear()
    return worker


def test_one_process_plays_all_and_maps_memory_only_if_it_grows(
    replayer: Replayer, started: Started
) -> None:
    first = play(replayer)
    assert started.orders == ["arena", "recording", "clear"]
    assert play(replayer) is first and started.orders == ["recording", "clear"]
    assert play(replayer, LARGE) is first
    assert started.orders == ["rest", "arena", "recording", "clear"]
    assert play(replayer) is first and started.orders == ["recording", "clear"]


def test_one_that_ended_is_replaced_by_the_one_that_is_ready(
    replayer: Replayer, started: Started
) -> None:
    first = play(replayer)
    spare = replayer._spare
    first.close()
    assert play(replayer) is spare.result()


@pytest.mark.parametrize("order", ["clear", "recording"])
def test_one_that_fails_is_not_used_again(replayer: Replayer, started: Started, order: str) -> None:
    first = play(replayer)
    first.fails = order
    if order == "recording":
        with pytest.raises(Failed):
            play(replayer)
        replayer.close()
    else:
        play(replayer)
    assert not first.waiting and play(replayer) is not first


def test_memory_that_it_frees_is_not_kept_mapped(replayer: Replayer) -> None:
    worker: Any = play(replayer)
    for trims in (False, True):
        worker.trims = trims
        _, _, player = replayer.load(Recording({}, {}), SMALL)
        player.mappings._opened["handle"] = Region(torch.zeros(8, dtype=torch.uint8))
        player.mappings._named.add("handle")  # by the last call
        replayer.clear()
        assert len(player.mappings) == (0 if trims else 1)
        player.mappings.next_pass()


def test_it_is_replaced_after_many_submissions(replayer: Replayer, started: Started) -> None:
    used = {id(play(replayer)) for _ in range(RENEWED)}
    assert len(used) == 1 and id(play(replayer)) not in used


def step(name: str, *views: list[Any]) -> dict[str, Any]:
    return {"op": [name, "default"], "args": [{"tensor": each} for each in views], "outs": []}


LAUNCH = {"kernel": "softmax"}
VIEW = [0, "float32", [4, 1000], [1000, 1], 0]
CLAIMED = Record(operations=[], kernels=["softmax"], symbols=[])


def recorded(*steps: dict[str, Any], claimed: Record = CLAIMED) -> Record:
    call = {"steps": list(steps)}
    return Recording({"main": {"first": call, "later": call}}, {}).record("main", claimed)


def test_an_operation_that_a_claim_leaves_out_counts() -> None:
    record = recorded(step("mm", VIEW, VIEW), LAUNCH, step("copy_", VIEW, VIEW))
    assert record.operations == [
        Operation(name="aten::mm", line=None, weights=False, elements=4000)
    ]
    found = violation(record, "kernel", 0.0, 4000)
    assert found is not None and found.kind == "torch_compute" and "aten::mm" in found.message


def test_a_claimed_operation_keeps_its_line() -> None:
    claim = Operation(name="aten::mm", line=7, weights=False, elements=16)
    claimed = CLAIMED.model_copy(update={"operations": [claim]})
    assert recorded(step("mm", VIEW), LAUNCH, claimed=claimed).operations == [claim]


def test_a_kernel_counts_only_if_later_calls_launch_one() -> None:
    assert recorded(LAUNCH) == CLAIMED
    found = violation(recorded(step("copy_", VIEW, VIEW)), "kernel", 0.0, 4000)
    assert found is not None and found.kind == "no_kernel"
    tuned = {"choice": "a", "options": [[LAUNCH], [LAUNCH]]}
    assert recorded(tuned).kernels == ["softmax"]


@pytest.mark.parametrize("case", [{}, {"first": {"steps": 3}}, {"first": {"steps": [{"op": 1}]}}])
def test_what_is_no_list_is_a_violation_of_the_protocol(case: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        Recording({"main": {"later": {"steps": []}} | case}, {}).record("main", CLAIMED)


class Answering(Process):
    """Gives one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__()
        self.answer = answer

    def ask(self, order: str, timeout: float, **_: Any) -> dict[str, Any]:
        return self.answer


def told(answer: dict[str, Any]) -> Recording | str:
    return precompile(Answering(answer), Shapes(cases=()), (), {}, "kernel", 60.0)  # type: ignore[arg-type]


def test_a_candidate_answers_with_a_recording_or_why_there_is_none() -> None:
    assert told({"cases": {"main": {}}, "kernels": {}}) == Recording({"main": {}}, {})
    assert told({"unrecorded": "streams"}) == "streams"
    assert len(told({"unrecorded": "x" * 9999})) < 1000  # type: ignore[arg-type]
    with pytest.raises(Failed, match="no"):
        told({"failure": FAILED.model_dump()})
    for answer in ({}, {"cases": []}, {"unrecorded": 3}, {"failure": {"kind": "jit"}}):
        with pytest.raises(Broken):
            told(answer)
