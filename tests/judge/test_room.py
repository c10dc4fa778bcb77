"""Who is judged alone on a crowded device gives others time."""

from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge import room


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
