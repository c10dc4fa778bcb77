"""Who is judged alone on a crowded device gives others time."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge import room
from kevin_env.judge.lease import Lease


class Crowded:
    """Stands where a bench does whose device is crowded for so many looks; notes when its partners are to rest."""

    def __init__(self, looks: int, lease: Lease) -> None:
        self.looks, self.asked, self.rested = looks, 0, list[bool]()
        self.lease, self.partners = lease, SimpleNamespace(rest=lambda: self.rested.append(lease.wanted()))

    def crowded(self, worker: Any) -> bool:
        self.asked += 1
        return self.asked <= self.looks


@pytest.fixture
def lease(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lease]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(room, "LOOK", 0.01)
    yield Lease("a device")


@pytest.mark.parametrize(
    ("looks", "patience", "stays", "rests"), [(0, 10, False, 0), (4, 10, False, 1), (9999, 0.1, True, 1)]
)
def test_others_have_time_to_give_memory_back_and_the_judges_own_partners_give_theirs(
    lease: Lease, monkeypatch: pytest.MonkeyPatch, looks: int, patience: float, stays: bool, rests: int
) -> None:
    monkeypatch.setattr(room, "PATIENCE", patience)
    bench: Any = Crowded(looks, lease)
    assert room.stays_crowded(bench, None) is stays  # type: ignore[arg-type]
    assert len(bench.rested) == rests


def test_partners_rest_while_nobody_is_timed(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    bench: Any = Crowded(1, lease)
    with lease.exclusive():
        waiting = threading.Thread(target=room.stays_crowded, args=(bench, None))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive() and not bench.rested
    waiting.join(5)
    assert not waiting.is_alive() and len(bench.rested) == 1
