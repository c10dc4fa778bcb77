"""In which order a candidate calls, waits and says so; on no device."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.mark.parametrize("count", [1, 3])
def test_the_answer_is_made_before_the_device_is_waited_for(count: int) -> None:
    runtime = Noted()
    runtime.go(count)
    assert runtime.notes == [*(f"call {number}" for number in range(count)), *["claim"] * count, "device"]
