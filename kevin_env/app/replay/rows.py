"""The rows of a list of episodes, read without building whole trajectories."""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json

from kevin_env.outcome import Category, Outcome
from kevin_env.record import SCHEMA, Trajectory, Turn

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


def mark_of(turn: Turn | Outcome) -> str:
    """The character that stands for a turn."""
    return NOISY if turn.kind == "too_noisy" else MARKS[turn.category]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an episode is recorded: `size` bytes at offset `at`."""

    path: Path
    at: int
    size: int
    running: bool = False
    """Whether it is in the partial file, with one line per turn."""


NOWHERE = Place(Path(), 0, 0)
"""The place of an episode that is not in a file."""


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


def natural(words: str) -> list[object]:
    """A sort key that puts `L1_3` before `L1_23`: texts and numbers in turn, numbers by length."""
    parts = enumerate(re.split(r"([0-9]+)", words.lower()))
    return [(len(part), part) if at % 2 else part for at, part in parts]


def read_row(line: bytes, place: Place) -> Row:
    """The row of a finished episode's line.

    Raises:
        ValueError: if the line is no episode of this version.
    """
    try:
        fields = from_json(line.removeprefix(codecs.BOM_UTF8))
        if not isinstance(fields, dict):
            raise ValueError("not a JSON object")
        if fields.get("schema") != SCHEMA:
            raise ValueError(f"schema is {fields.get('schema')!r}, this version reads {SCHEMA!r}")
        outcomes = [turn["outcome"] for turn in fields.get("turns", ())]
        level, values = fields["problem"].get("level"), fields.get("returns")
        return Row(
            place=place,
            episode_id=str(fields["episode_id"]),
            problem=str(fields["problem"]["id"]),
            level=None if level is None else int(level),
            model=str(fields["model"]),
            device=str((fields.get("hardware") or {}).get("name", "")),
            created=str(fields["created"]),
            stop_reason=str(ended) if (ended := fields.get("stop_reason")) else None,
            marks="".join(
                NOISY if each["kind"] == "too_noisy" else MARKS[each["category"]]
                for each in outcomes
            ),
            speedups=tuple(each.get("speedup") for each in outcomes),
            value=float(values[0]) if values else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
        raise ValueError(f"not a trajectory: {what}") from error


def row_of(episode: Trajectory, place: Place = NOWHERE) -> Row:
    """The row of a complete episode."""
    return read_row(episode.model_dump_json().encode(), place)
