"""Turns of a contest without a device: who runs when, in which order, and which windows count."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge.answer import Answer
from kevin_env.judge.contest import Contest
from kevin_env.judge.gated import Turn
from kevin_env.judge.pace import PACES

NAMES = ("submission", "reference", "null")


class Side:
    """Stands where a process does; whether it runs. It goes on at once, and stops when that is waited for."""

    pid = 1 << 30

    def __init__(self) -> None:
        self.runs = self.to_run = True

    def attend(self, closely: bool) -> None:
        pass

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        self.to_run = not frozen
        self.runs = self.runs or self.to_run
        if wait:
            self.settle()

    def settle(self) -> None:
        self.runs = self.to_run


def window(seconds: float, steady: bool = True) -> Answer:
    return Answer(seconds, (), [], True, False, steady, [])


def contest(**more: Any) -> Contest:
    """One on a CPU whose players are named as they are; `more` is its trial's."""
    place: dict[str, Any] = {
        "bench": SimpleNamespace(pace=PACES["cpu"], device=torch.device("cpu"), place=None),
        "player": "submission",
    }
    supply: Any = SimpleNamespace(
        take=lambda count: ["fresh"] * count, stock=lambda count: ["stock"] * count, take_other=lambda: "any"
    )
    unverified: Any = SimpleNamespace(keep=lambda *given: None, relieve=lambda: None)
    trial: Any = SimpleNamespace(**(place | more))
    return Contest(trial, "reference", "null", unverified, supply)  # type: ignore[arg-type]


def test_whoever_is_not_in_its_window_stands_still() -> None:
    sides = {name: Side() for name in NAMES}
    players = {name: SimpleNamespace(worker=side) for name, side in sides.items()}
    runs: list[list[str]] = []

    def called(*given: Any, **more: Any) -> Answer:
        runs.append([name for name, side in sides.items() if side.runs])
        return window(1.0)

    made = contest(
        worker=sides["submission"], player=players["submission"], gate=SimpleNamespace(call=called), run=called,
        distributions=["own"], draw=lambda distribution: distribution,
    )  # fmt: skip
    made.reference, made.null = players["reference"], players["null"]  # type: ignore[assignment]
    with pytest.raises(KeyError), made.still():
        assert not any(side.runs for side in sides.values())
        for name in (*NAMES, *NAMES):
            runs.clear()
            made.answers(players[name], 2)  # type: ignore[arg-type]
            made.passes(players[name], [[]])  # type: ignore[arg-type, list-item]
            assert len(runs) >= 3 and all(each == [name] for each in runs)
        made.require_still()
        assert not any(side.runs for side in sides.values())
        raise KeyError
    assert all(side.runs for side in sides.values())


def test_the_sides_of_a_turn_come_in_no_order_that_can_be_known() -> None:
    made, orders = contest(), set[tuple[str, ...]]()
    seconds = dict(zip(NAMES, (3.0, 2.0, 1.0), strict=True))
    for _ in range(200):
        asked: list[str] = []
        made._shortest_window = lambda player, count, asked=asked: asked.append(player) or seconds[player]  # type: ignore[method-assign, index]
        assert made._turn(0.5) == Turn(3.0, 2.0, 1.0, hold=0.5)
        orders.add(tuple(asked))
    assert len(orders) == 6


@pytest.mark.parametrize(
    ("rounds", "seconds"),
    [
        ([[window(5.0), window(4.0)]], 4.0),
        ([[window(3.0), window(2.0, steady=False)], [window(5.0), window(4.0)]], 4.0),
        ([[window(2.0, steady=False)], [window(9.0, steady=False)], [window(4.0)]], 4.0),
        ([[window(2.0, steady=False)]] * 2 + [[window(5.0, steady=False), window(4.0, steady=False)]], 4.0),
    ],
    ids=["steady", "the second time", "the third time", "never"],
)
def test_windows_in_which_memory_was_mapped_are_taken_again(rounds: list[list[Answer]], seconds: float) -> None:
    """Three times: whoever takes new memory in every call pays for it."""
    made, left = contest(), rounds.copy()

    def answers(player: Any, count: int) -> Iterable[Answer]:
        return left.pop(0)

    made.answers = answers  # type: ignore[method-assign, assignment]
    assert made._shortest_window("reference", 2) == seconds and not left  # type: ignore[arg-type]
