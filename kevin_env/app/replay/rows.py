"""The rows of a list of episodes, parsed without building whole trajectories."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kevin_env.outcome import Category, Correct, Outcome, speedup_of
from kevin_env.record import Trajectory, Turn
from kevin_env.score import at_bound

MARKS: dict[Category, str] = {
    "format": "?",
    "rules": "#",
    "compile": "x",
    "runtime": "!",
    "correctness": "~",
    "correct": "●",
}
"""One character per category of a turn."""

NOISY = "○"
"""The character of a correct turn with a noisy time."""

CATEGORIES: dict[str, Category] = {
    **{mark: category for category, mark in MARKS.items()},
    NOISY: "correct",
}


def mark_of(turn: "Turn | Outcome | _Outcome") -> str:
    """The character that stands for a turn."""
    return NOISY if turn.kind == "too_noisy" else MARKS[turn.category]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an episode is recorded: `size` bytes at offset `at`, line `line` (from 1)."""

    path: Path
    at: int
    size: int
    line: int
    running: bool = False
    """Whether it is in the partial file, with one line per turn."""


@dataclass(frozen=True, slots=True)
class Row:
    """One episode of a list."""

    place: Place
    episode_id: str
    problem: str
    level: int | None
    model: str
    device: str
    created: str
    stop_reason: str | None
    marks: str
    """One character per turn, see `mark_of`."""
    speedups: tuple[float | None, ...]
    """Those that a score pays, see `Turn.paid_speedup`."""
    value: float | None
    """The return of the first turn; None where none is recorded."""

    @property
    def best(self) -> float | None:
        """The largest speedup."""
        return max((each for each in self.speedups if each is not None), default=None)

    @property
    def key(self) -> tuple[Path, str]:
        """Identifies the episode while it runs and after it ended."""
        return self.place.path, self.episode_id


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Problem(_Part):
    id: str
    level: int | None = None


class _Outcome(_Part):
    category: Category
    kind: str
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None

    @property
    def paid(self) -> float | None:
        return speedup_of(at_bound(Correct.model_construct(**self.model_dump(), roofline=None)))


class _Turn(_Part):
    outcome: _Outcome


class _Hardware(_Part):
    name: str = ""


class _Episode(_Part):
    format: Literal["kevin-trajectory/1"] = Field(alias="schema")
    episode_id: str
    created: str
    problem: _Problem
    model: str
    hardware: _Hardware | None = None
    turns: tuple[_Turn, ...] = ()
    returns: tuple[float, ...] = ()
    stop_reason: str | None = None


def read_row(line: bytes, place: Place) -> Row:
    """The row of a finished episode's line.

    Raises:
        ValidationError: if the line is no episode of this version.
    """
    read = _Episode.model_validate_json(line)
    return _row(read, place, tuple(turn.outcome.paid for turn in read.turns))


NOWHERE = Place(Path(), 0, 0, 0)
"""The place of an episode that is not in a file."""


def row_of(episode: Trajectory, place: Place = NOWHERE) -> Row:
    """The row of a complete episode."""
    return _row(episode, place, tuple(turn.paid_speedup for turn in episode.turns))


def _row(episode: _Episode | Trajectory, place: Place, speedups: tuple[float | None, ...]) -> Row:
    return Row(
        place=place,
        episode_id=episode.episode_id,
        problem=episode.problem.id,
        level=episode.problem.level,
        model=episode.model,
        device=episode.hardware.name if episode.hardware else "",
        created=episode.created,
        stop_reason=episode.stop_reason,
        marks="".join(mark_of(turn.outcome) for turn in episode.turns),
        speedups=speedups,
        value=episode.returns[0] if episode.returns else None,
    )
