"""Who is judged alone on a crowded device gives others time, and blames no submission for what these keep."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge import room
from kevin_env.judge.verdict import Place


class Crowded:
    """Stands where a bench does whose device is crowded for so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks, self.asked, self.rested = looks, 0, 0
        self.partners = SimpleNamespace(rest=self.rest)

    def rest(self) -> None:
        self.rested += 1

    def crowded(self, worker: Any) -> bool:
        self.asked += 1
        return self.asked <= self.looks


@pytest.mark.parametrize(
    ("looks", "patience", "stays", "rests"), [(0, 10, False, 0), (4, 10, False, 1), (9999, 0.1, True, 1)]
)
def test_others_have_time_to_give_memory_back_and_the_judges_own_partners_give_theirs(
    monkeypatch: pytest.MonkeyPatch, looks: int, patience: float, stays: bool, rests: int
) -> None:
    monkeypatch.setattr(room, "PATIENCE", patience)
    monkeypatch.setattr(room, "LOOK", 0.01)
    bench: Any = Crowded(looks)
    assert room.stays_crowded(bench, None) is stays  # type: ignore[arg-type]
    assert bench.rested == rests


@pytest.mark.parametrize(
    ("device", "step", "free", "held", "short"),
    [
        ("cuda", "call", 1 << 30, 1 << 20, True),
        ("cuda", "call", 2 << 30, 1 << 20, False),
        ("cuda", "call", 0, 2 << 30, False),
        ("cuda", "construct", 1 << 30, 1 << 20, True),
        ("cuda", "build", 1 << 30, 1 << 20, False),
        ("cpu", "call", 1 << 30, 1 << 20, False),
    ],
    ids=["too little", "enough", "hoards it", "in its constructor", "before anything is known", "no device memory"],
)
def test_a_submission_must_have_room_for_its_outputs_and_weights_twice(
    monkeypatch: pytest.MonkeyPatch, device: str, step: str, free: int, held: int, short: bool
) -> None:
    """Of a linear layer with 64 MB of weights and outputs of 256 MB."""
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (free, 1 << 40))
    bench = SimpleNamespace(device=torch.device(device), held=lambda worker: held)
    model = torch.nn.Linear(4096, 4096, bias=False, device="meta")
    trial: Any = SimpleNamespace(
        bench=bench, place=Place(step), worker=None, case=SimpleNamespace(model=model),  # type: ignore[arg-type]
        gate=SimpleNamespace(answer_bytes=256 << 20),
    )  # fmt: skip
    assert room.cramped(trial) is short
