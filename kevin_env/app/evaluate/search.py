"""Test-time search: which episodes of a problem are to be played on, seen from those that there
are.

Nothing is remembered but what is recorded, so that a search that was killed goes on as it would
have. All is values; `kevin_env.app.evaluate.run` plays.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from kevin_env.outcome import Frozen, speedup_of
from kevin_env.record import StopReason, Trajectory
from kevin_env.score import at_bound

AGAIN: frozenset[StopReason | None] = frozenset({None, "judge_error", "model_error", "interrupted"})
"""Ends that are no ends: such an episode is taken up again. None: it was cut off."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many samples a problem has at a time, and how their turns are divided."""

    samples: int
    turns: int
    """Of each sample."""
    rounds: int = 1
    """After each but the last the best go on in the place of the others."""
    keep: int = 0
    """How many these are."""


class Serial(Frozen):
    """Each sample is one episode of all its turns."""

    kind: Literal["serial"] = "serial"

    def shape(self, samples: int, max_turns: int) -> Shape:
        """As it was asked for."""
        return Shape(samples, max_turns)

    def require_fits(self, samples: int, max_turns: int) -> None:
        """Fits any."""


class Parallel(Frozen):
    """As many replies as serially, each of them a first turn: `samples` x `max_turns` episodes of
    one turn.
    """

    kind: Literal["parallel"]

    def shape(self, samples: int, max_turns: int) -> Shape:
        """As many samples as there would be turns."""
        return Shape(samples * max_turns, 1)

    def require_fits(self, samples: int, max_turns: int) -> None:
        """Fits any."""


class Beam(Frozen):
    """Rounds of equally many turns; after each the `keep` samples with the fastest kernels take the
    place of all.

    Kevin's is 16 samples, of which 4 are kept after every 4 turns: `max_turns` 8 and 2 rounds, or
    12 and 3.
    """

    kind: Literal["beam"]
    width: int = Field(default=16, ge=1)
    """Samples at a time; the same as `samples`."""
    keep: int = Field(default=4, ge=1)
    rounds: int = Field(default=2, ge=1)

    def shape(self, samples: int, max_turns: int) -> Shape:
        """With all of its own."""
        return Shape(samples, max_turns, self.rounds, self.keep)

    def require_fits(self, samples: int, max_turns: int) -> None:
        """Raises ValueError if it cannot be played."""
        if samples != self.width:
            raise ValueError(
                f"search.width = {self.width}: it is the same as samples, which is {samples}"
            )
        if self.keep > self.width:
            raise ValueError(
                f"search.keep = {self.keep}: no more than the width, {self.width}, can be kept"
            )
        if max_turns % self.rounds:
            said = f"settings.max_turns = {max_turns} cannot be divided into that many equal rounds"
            raise ValueError(f"search.rounds = {self.rounds}: {said}")


Search = Annotated[Serial | Parallel | Beam, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Past:
    """What a search has to know of an episode."""

    episode_id: str
    sample: int
    stop_reason: StopReason | None
    merits: tuple[float, ...]
    """Of each turn: its speedup, 0 if it is correct with none that could be told, -1 if it is not.
    """

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Past":
        """Of an episode, which must have the number of its sample."""
        if trajectory.sample is None:
            raise ValueError(f"episode {trajectory.episode_id} does not say which sample it is")
        outcomes = [at_bound(turn.outcome) for turn in trajectory.turns]
        merits = (
            speedup_of(each) or 0.0 if each.category == "correct" else -1.0 for each in outcomes
        )
        return cls(trajectory.episode_id, trajectory.sample, trajectory.stop_reason, tuple(merits))

    @property
    def ended(self) -> bool:
        """Whether it has ended for good. One that was killed after its last turn has not: its end
        is not written.
        """
        return self.stop_reason not in AGAIN

    def can_go_on_from(self, turn: int) -> bool:
        """Whether it was still running after that turn."""
        return len(self.merits) > turn or (
            len(self.merits) == turn and self.stop_reason != "stop_on"
        )

    def best(self, turns: int) -> float:
        """What the fastest kernel of its first turns was worth."""
        return max(self.merits[:turns], default=-1.0)


@dataclass(frozen=True, slots=True)
class Play:
    """One sample is to be played until it has that many turns."""

    sample: int
    until: int
    past: Past | None = None
    """The episode to go on with; None: from the beginning."""
    fork_at: int | None = None
    """Instead of going on with it: its first turns, as many as this, are those of a new episode."""

    @property
    def begin(self) -> int:
        """How many turns there are already."""
        turns = len(self.past.merits) if self.past else 0
        return turns if self.fork_at is None else self.fork_at


@dataclass(frozen=True, slots=True)
class Plan:
    """What can be done now for a problem. When both are empty, all is done."""

    plays: tuple[Play, ...] = ()
    prunes: tuple[Past, ...] = ()
    """To be ended before any of `plays` begins."""


def plan(shape: Shape, pasts: Sequence[Past]) -> Plan:
    """What is to be played next.

    Args:
        shape: of the search.
        pasts: every episode of the problem, in the order in which they began or ended.
    """
    lines = [
        _Line([past for past in pasts if past.sample == sample], sample)
        for sample in range(shape.samples)
    ]
    length = shape.turns // shape.rounds
    for end in range(length, shape.turns + 1, length):
        waiting = [line for line in lines if not line.there(end, last=end == shape.turns)]
        prunes = tuple(line.pruned for line in lines if line.pruned)
        if waiting or prunes:
            return Plan(
                tuple(Play(line.sample, end, line.now, line.fork_at) for line in waiting), prunes
            )
        if end < shape.turns:
            _select(lines, end, shape.keep)
    return Plan()


class _Line:
    """The episodes that held one sample's place, one after the other, and how far one has looked."""

    def __init__(self, pasts: list[Past], sample: int) -> None:
        self.sample = sample
        self.now: Past | None = None
        self.fork_at: int | None = None
        self.pruned: Past | None = None
        self._later = pasts
        self._next()

    def there(self, turn: int, last: bool) -> bool:
        """Whether it has been played up to that turn."""
        if self.now is None or self.fork_at is not None:
            return False
        return self.now.ended or (len(self.now.merits) >= turn and not last)

    def replace(self, best: Past, turn: int) -> None:
        """Another takes this one's place after that turn, unless that has been done."""
        if self.now and not self.now.ended:
            self.pruned = self.now
        if self._later:
            self._next()
        else:
            self.now, self.fork_at = best, turn

    def _next(self) -> None:
        """Goes to the next one, over those that were taken up again."""
        while self._later:
            self.now = self._later.pop(0)
            if self.now.ended:
                break


def _select(lines: Sequence[_Line], turn: int, keep: int) -> None:
    """The best after a turn go on as they are, and in the place of the rest. Whatever has ended
    keeps its place.
    """
    running = [(line, line.now) for line in lines if line.now and line.now.can_go_on_from(turn)]
    running.sort(key=lambda pair: -pair[1].best(turn))  # stable: of equals the first
    best = [past for _, past in running[:keep]]
    for number, (line, _) in enumerate(running[keep:]):
        line.replace(best[number % len(best)], turn)


def fork(trajectory: Trajectory, turns: int, sample: int) -> Trajectory:
    """An episode that begins with another's first turns, to be taken up: `Episode.fork` for a
    record, at any turn.
    """
    return trajectory.model_copy(
        update={
            "episode_id": uuid.uuid4().hex,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "sample": sample,
            "parent": trajectory.episode_id,
            "turns": trajectory.turns[:turns],
            "returns": (),
            "stop_reason": None,
        }
    )
