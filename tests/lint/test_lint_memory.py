"""What a lint holds of a problem's tensors: little beside the reference's own, and nothing
afterwards.
"""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from kevin_env.judge.api import Options
from kevin_env.judge.compare.accumulator import OneAccumulator
from kevin_env.judge.compare.values import PIECE
from kevin_env.judge.inputs.facts import FactStore
from kevin_env.judge.judge import Judge
from kevin_env.lint.examine import examine
from kevin_env.lint.influence import _exchanged
from kevin_env.lint.report import Limits, LintReport
from kevin_env.problem import Problem
from kevin_env.profile.roofline import Light

SIDE = 512
UNIT = 4 * SIDE * SIDE
"""Bytes of the input, and of the output."""
SOURCE = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return {body}
def get_inputs():
    return [torch.randn({side}, {side})]
def get_init_inputs():
    return []
"""


class Held(Light):
    """Counts bytes of large tensors that are held at once; when `end` of them were seen, there is
    no room for more.
    """

    def __init__(self, end: int = -1) -> None:
        super().__init__()
        self.most = self.seen = 0
        self._end = end
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}

    @property
    def now(self) -> int:
        self._made = {key: made for key, made in self._made.items() if not made[0].expired()}
        return sum(size for _, size in self._made.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = len(self._made)
        for tensor in tree_leaves(result):
            if not isinstance(tensor, torch.Tensor) or tensor.is_meta:
                continue
            if (storage := tensor.untyped_storage()).nbytes() >= UNIT:
                self._made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        if len(self._made) > known:
            self.seen += 1
            self.most = max(self.most, self.now)
            if self.seen == self._end:
                raise torch.OutOfMemoryError(
                    "CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total"
                )
        return result


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So that pieces are not counted, and without the collector: what is held by a cycle is held."""
    monkeypatch.setitem(PIECE, "cpu", 1 << 14)
    with (
        sdpa_kernel(SDPBackend.MATH),
        OneAccumulator(),
    ):  # the first time in a process something keeps its frames
        torch.ones(2).sum()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def lint(judge: Judge, held: Held, body: str, side: int = SIDE) -> LintReport:
    it = Problem(id="p", name="p", source=SOURCE.format(body=body, side=side), cases=("main",))
    judge.bench.facts = FactStore(judge.device, judge.info)
    with held:
        return examine(judge, it, Options(device="cpu"), Limits(cpu_seconds=20, first_seconds=200))


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "left"), [("x.clamp(-100, 100)", ("input 0",)), ("torch.sigmoid(x)", ())]
)
def test_a_lint_holds_little_more_than_the_reference_and_its_oracle(
    untimed_judge: Judge, body: str, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input and output, the same in float64, and once more an input: also where answers are left
    for further sets.
    """
    monkeypatch.setattr("kevin_env.lint.examine.screen", lambda *_: None)
    held = Held()
    report = lint(untimed_judge, held, body)
    assert report.ok and report.accepted_as_shipped == left
    assert 6 * UNIT <= held.most <= 7.5 * UNIT
    assert held.now == 0


def test_a_changed_input_is_all_that_is_made_for_one() -> None:
    """Where the seed does not decide, by noise as large as the spread."""
    x = 3 * torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    same = x.clone()
    held = Held()
    with held:
        changed = _exchanged(x, same)
    assert changed is not None and (changed - x).std().item() == pytest.approx(3, rel=0.01)
    assert 3 * UNIT <= held.most <= 3.5 * UNIT, "both inputs and what is made"


@pytest.mark.full
def test_a_reference_is_judged_where_the_lint_has_no_room(untimed_judge: Judge) -> None:
    """After an error for want of memory at any place nothing is held, and the reference is judged
    all the same.
    """
    whole, kinds = Held(), set()
    lint(untimed_judge, whole, "torch.relu(x)")
    for end in range(2, whole.seen, max(1, whole.seen // 24)):
        held = Held(end)
        report = lint(untimed_judge, held, "torch.relu(x)")
        assert held.now == 0, end
        messages = [finding.message for finding in report.findings if finding.check == "memory"]
        for message in messages:
            assert message.startswith("not enough device memory for ") and "CUDA" not in message
            kinds.add(message.removeprefix("not enough device memory for ").partition(";")[0])
        judged = not any("judging" in message for message in messages)
        assert report.reference == ("accepted" if judged else "not judged"), (end, messages)
    assert kinds == {
        "running the reference and its float64 oracle", "trying trivial answers",
        "changing inputs and weights one by one",  # what is judged is judged again
    }  # fmt: skip


def test_a_reference_that_fails_is_not_judged(untimed_judge: Judge) -> None:
    report = lint(untimed_judge, Held(), "nope(x)")
    assert report.reference == "failed" and [finding.check for finding in report.findings] == [
        "reference"
    ]


def test_inputs_that_are_too_large_for_a_cpu_are_not_drawn(untimed_judge: Judge) -> None:
    (finding,) = lint(untimed_judge, Held(), "x", side=1 << 20).findings
    assert finding.check == "reference" and "are too large for a CPU with" in finding.message
