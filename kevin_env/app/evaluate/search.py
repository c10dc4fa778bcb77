"""Test-time search: which episodes of a problem to play next, given the recorded ones.

The recorded episodes are the only state, so a killed search continues as it would have. These are
pure functions; `kevin_env.app.evaluate.run` plays.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from kevin_env.outcome import Frozen
from kevin_env.record import StopReason, Trajectory

AGAIN: frozenset[StopReason | None] = frozenset({None, "judge_error", "model_error", "interrupted"})
"""Stop reasons after which an episode is continued. None: the process was killed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The number of samples per problem, and how their turns are divided."""

    samples: int
    turns: int
    """Per sample."""
    rounds: int = 1
    """After each but the last, the best samples replace the others."""
    keep: int = 0
    """How many samples are the best."""


class Serial(Frozen):
    """Each sample is one episode."""

    kind: Literal["serial"] = "serial"

    def shape(self, samples: int, max_turns: int) -> Shape:
        """As configured."""
        return Shape(samples, max_turns)


class Parallel(Frozen):
    """The same number of replies, each a first turn: `samples` x `max_turns` one-turn episodes."""

    kind: Literal["parallel"]

    def shape(self, samples: int, max_turns: int) -> Shape:
        """One sample per turn."""
        return Shape(samples * max_turns, 1)


class Beam(Frozen):
    """Equal rounds; after each the `keep` samples with the fastest kernels replace the others.

    Kevin keeps 4 of 16 samples after every 4 turns (arXiv 2507.11948): `max_turns` 8 with 2
    rounds, or 12 with 3.
    """

    kind: Literal["beam"]
    keep: int = Field(default=4, ge=1)
    rounds: int = Field(default=2, ge=1)

    def shape(self, samples: int, max_turns: int) -> Shape:
        """With rounds.

        Raises:
            ValueError: if the numbers do not fit each other.
        """
        if self.keep > samples:
            raise ValueError(f"search.keep = {self.keep}: must not exceed samples, {samples}")
        if max_turns % self.rounds:
            said = f"settings.max_turns = {max_turns} is not a multiple of it"
            raise ValueError(f"search.rounds = {self.rounds}: {said}")
        return Shape(samples, max_turns, self.rounds, self.keep)


Search = Annotated[Serial | Parallel | Beam, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Past:
    """What a search needs of an episode."""

    episode_id: str
    sample: int
    stop_reason: StopReason | None
    merits: tuple[float, ...]
    """Per turn: its speedup, 0 if it is correct without a time, -1 if it is incorrect."""

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Past":
        """From an episode with a sample number."""
        if trajectory.sample is None:
            raise ValueError(f"episode {trajectory.episode_id} has no sample number")
        merits = (
            turn.paid_speedup or 0.0 if turn.category == "correct" else -1.0
            for turn in trajectory.turns
        )
        return cls(trajectory.episode_id, trajectory.sample, trajectory.stop_reason, tuple(merits))

    @property
    def ended(self) -> bool:
        """Whether it is over. One that was killed before its end was written is not."""
        return self.stop_reason not in AGAIN

    def can_go_on_from(self, turn: int) -> bool:
        """Whether it was still running after this turn."""
        return len(self.merits) > turn or (
            len(self.merits) == turn and self.stop_reason != "stop_on"
        )

    def best(self, turns: int) -> float:
        """The merit of the best of its first turns."""
        return max(self.merits[:turns], default=-1.0)


@dataclass(frozen=True, slots=True)
class Play:
    """Play one sample until it has `until` turns."""

    sample: int
    until: int
    past: Past | None = None
    """The episode to continue or fork; None: a new one."""
    fork_at: int | None = None
    """Fork the episode after this many turns instead of continuing it."""

    @property
    def begin(self) -> int:
        """How many turns it has already."""
        turns = len(self.past.merits) if self.past else 0
        return turns if self.fork_at is None else self.fork_at


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now for a problem. If both are empty, the search is complete."""

    plays: tuple[Play, ...] = ()
    prunes: tuple[Past, ...] = ()
    """Episodes to end before any of `plays`."""


def plan(shape: Shape, pasts: Sequence[Past]) -> Plan:
    """The next step of a search.

    Args:
        shape: of the search.
        pasts: all episodes of the problem, in the order of the record.
    """
    lines = [
        _Line([past for past in pasts if past.sample == sample], sample)
        for sample in range(shape.samples)
    ]
    length = shape.turns // shape.rounds
    for end in range(length, shape.turns + 1, length):
        waiting = [line for line in lines if not line.reached(end, last=end == shape.turns)]
        prunes = tuple(line.pruned for line in lines if line.pruned)
        if waiting or prunes:
            return Plan(
                tuple(Play(line.sample, end, line.now, line.fork_at) for line in waiting), prunes
            )
        if end < shape.turns:
            _select(lines, end, shape.keep)
    return Plan()


class _Line:
    """The successive episodes of one sample, and the current one."""

    def __init__(self, pasts: list[Past], sample: int) -> None:
        self.sample = sample
        self.now: Past | None = None
        self.fork_at: int | None = None
        self.pruned: Past | None = None
        self._later = pasts
        self._next()

    def reached(self, turn: int, last: bool) -> bool:
        """Whether it has been played up to this turn."""
        if self.now is None or self.fork_at is not None:
            return False
        return self.now.ended or (len(self.now.merits) >= turn and not last)

    def replace(self, best: Past, turn: int) -> None:
        """Forks `best` at this turn in its place, unless the record has the fork already."""
        if self.now and not self.now.ended:
            self.pruned = self.now
        if self._later:
            self._next()
        else:
            self.now, self.fork_at = best, turn

    def _next(self) -> None:
        """Moves to the next episode, skipping those that were continued."""
        while self._later:
            self.now = self._later.pop(0)
            if self.now.ended:
                break


def _select(lines: Sequence[_Line], turn: int, keep: int) -> None:
    """Continues the best episodes after a turn, and forks them in place of other running ones."""
    running = [(line, line.now) for line in lines if line.now and line.now.can_go_on_from(turn)]
    running.sort(key=lambda pair: -pair[1].best(turn))  # stable: the first of equals wins
    best = [past for _, past in running[:keep]]
    for number, (line, _) in enumerate(running[keep:]):
        line.replace(best[number % len(best)], turn)


def fork(trajectory: Trajectory, turns: int, sample: int) -> Trajectory:
    """A new episode with another's first turns: `Episode.fork` for a record, at any turn."""
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
