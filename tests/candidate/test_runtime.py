"""In which order a candidate calls, waits and says so; on no device."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.region import Region
from kevin_env.candidate.runtime import Runtime


class Noted(Runtime):
    """Notes what it does instead of doing it; its device is waited for by `device`."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        super().__init__(SimpleNamespace(send_frame=lambda frame: self.notes.append("mark")))  # type: ignore[arg-type]
        self.model = lambda number: self.notes.append(f"call {number}")
        self.sets = [(number,) for number in range(4)]

    def _event(self) -> Any:
        number = sum(note.startswith("call") for note in self.notes)
        return SimpleNamespace(synchronize=lambda: self.notes.append(f"wait for {number}"))

    def _claim(self, output: Any) -> dict[str, Any]:
        self.notes.append("claim")
        return {}

    def synchronize(self) -> None:
        self.notes.append("device")


def test_a_mark_is_waited_for_with_one_call_more_queued_and_the_last_one_for_all_of_the_device() -> None:
    runtime = Noted()
    assert json.loads(runtime.go(4, marks=[1, 2, 4])[4:]) == {"claims": [{}] * 4}
    assert runtime.notes == [
        *("call 0", "call 1", "wait for 1", "mark", "call 2", "wait for 2", "mark", "call 3"),
        *(*["claim"] * 4, "device", "mark", "device"),
    ]


def test_of_a_queued_burst_everything_is_launched_and_told_before_anything_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first mark says that all is queued, and its last one is on the stream that the others are on."""
    runtime, word = Noted(), Region(torch.zeros(4, dtype=torch.uint8))
    runtime.regions["word"] = word
    monkeypatch.setattr(cuda, "wait_for", lambda *given: runtime.notes.append(f"behind {given == (word.start, 7)}"))
    runtime.go(4, marks=[1, 2, 4], behind=7)
    assert runtime.notes == [
        *("behind True", "call 0", "call 1", "call 2", "call 3", *["claim"] * 4, "mark"),
        *("wait for 1", "mark", "wait for 2", "mark", "wait for 4", "mark", "device"),
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_the_answer_is_made_before_the_device_is_waited_for(count: int) -> None:
    runtime = Noted()
    runtime.go(count)
    assert runtime.notes == [*(f"call {number}" for number in range(count)), *["claim"] * count, "device"]
