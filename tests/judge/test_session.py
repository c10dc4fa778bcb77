"""A session without a device: who runs when, in which order, and on whose inputs."""

from types import SimpleNamespace
from typing import Any

import pytest

from kevin_env.judge.timing.session import TimingSession

NAMES = ("submission", "reference", "null")


class Side:
    """Stands where a process does; whether it runs. It goes on at once, and stops when that is
    waited for.
    """

    def __init__(self) -> None:
        self.runs = self.to_run = True
        self.attended = False

    def attend(self, closely: bool) -> None:
        self.attended = closely

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        self.to_run = not frozen
        self.runs = self.runs or self.to_run
        if wait:
            self.settle()

    def settle(self) -> None:
        self.runs = self.to_run


class Called:
    """What three sides do when they are called; `runs` has who ran in each call, `given` the
    inputs.
    """

    def __init__(self) -> None:
        self.sides = {name: Side() for name in NAMES}
        self.players: dict[str, Any] = {
            name: SimpleNamespace(worker=side) for name, side in self.sides.items()
        }
        self.runs: list[list[str]] = []
        self.given: list[str] = []
        self.compared: list[str] = []
        call = SimpleNamespace(call=lambda player, drawn, timeout: self._note(drawn))
        run: Any = SimpleNamespace(
            worker=self.sides["submission"],
            player=self.players["submission"],
            handshake=call,
            call=self._note,
        )
        supply: Any = SimpleNamespace(
            take=lambda count: ["fresh"] * count, stock=lambda count: ["stock"] * count
        )
        unverified: Any = SimpleNamespace(add=lambda answer, drawn: self.compared.append(drawn))
        apart: Any = call
        self.session = TimingSession(
            run, self.players["reference"], self.players["null"], unverified, supply, apart
        )

    def _note(self, drawn: str) -> str:
        self.given.append(drawn)
        self.runs.append([name for name, side in self.sides.items() if side.runs])
        return "an answer"


@pytest.fixture
def made() -> Called:
    return Called()


def test_whoever_is_not_called_stands_still(made: Called) -> None:
    with pytest.raises(KeyError), made.session.still():
        assert not any(side.runs for side in made.sides.values())
        for name in (*NAMES, *NAMES):
            made.session.call(made.players[name])
        assert made.runs == [[name] for name in (*NAMES, *NAMES)]
        made.session.require_still()
        assert not any(side.runs for side in made.sides.values())
        raise KeyError
    assert all(side.runs for side in made.sides.values())


def test_only_the_submissions_inputs_are_fresh_and_only_its_answers_are_compared(
    made: Called,
) -> None:
    for name in NAMES:
        made.session.call(made.players[name])
    assert made.given == ["fresh", "stock", "stock"] and made.compared == ["fresh"]


def test_all_three_are_waited_for_closely_while_they_are_timed_and_no_longer(made: Called) -> None:
    with pytest.raises(KeyError), made.session.still():
        assert all(side.attended for side in made.sides.values())
        raise KeyError
    assert not any(side.attended for side in made.sides.values())
