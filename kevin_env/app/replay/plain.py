"""Trajectories as plain text or JSON, for pipes, files and `--plain`."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console

from kevin_env.advantage import returns_of
from kevin_env.app.errors import BadInput
from kevin_env.app.replay.code import clean, unfenced
from kevin_env.app.replay.describe import episode_facts
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.panes import pane_lines
from kevin_env.app.replay.pieces import Look
from kevin_env.app.replay.query import EVERYTHING, Query
from kevin_env.app.replay.rows import Row
from kevin_env.app.screen import show, show_lines, turn_line, turns_table
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine

_SLICE = 0.2
"""Seconds of reading between two batches of rows."""
_LOOK = 0.5
"""Seconds between checks of a file that is followed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which trajectories, and which turn of each; by default all."""

    query: Query = EVERYTHING
    episode: str = ""
    """A prefix of its id."""
    turn: int | None = None


def chosen(library: Library, choice: Choice, errors: Console) -> Iterator[Trajectory]:
    """The chosen trajectories, each as soon as it is read; unreadable lines go to `errors`.

    Raises:
        BadInput: if there are none, or none has the requested turn.
    """
    count = longest = 0
    for row in _passing(library, choice):
        longest = max(longest, len(row.marks))
        read = library.episode(row)
        if isinstance(read, BadLine):
            show(errors, f"{read}; it is left out", "red")
        elif kept := read if choice.turn is None else only_turn(read, choice.turn):
            count += 1
            yield kept
    _name_bad(library, errors)
    if not count:
        raise _nothing(library, choice, longest)


def rows_of(library: Library, choice: Choice, errors: Console) -> list[Row]:
    """The rows of the trajectories that are chosen. Errors as `chosen`."""
    rows = list(_passing(library, choice))
    _name_bad(library, errors)
    longest = max((len(row.marks) for row in rows), default=0)
    if not rows or longest < (choice.turn or 0):
        raise _nothing(library, choice, longest)
    return rows


def only_one(library: Library, choice: Choice, errors: Console) -> Trajectory:
    """The one trajectory that is chosen.

    Raises:
        BadInput: if there is none, or more than one.
    """
    found = rows_of(library, choice, errors)
    if len(found) > 1:
        ids = ", ".join(row.episode_id[:8] for row in found[:5]) + " ..." * (len(found) > 5)
        raise BadInput(f"{len(found)} trajectories match; choose one with --episode: {ids}")
    read = library.episode(found[0])
    if isinstance(read, BadLine):
        raise BadInput(str(read))
    return read


def only_turn(episode: Trajectory, number: int) -> Trajectory | None:
    """The episode with only that turn; None if it has no such turn."""
    values = dict(zip((turn.turn for turn in episode.turns), returns_of(episode), strict=True))
    if number not in values:
        return None
    turns = tuple(turn for turn in episode.turns if turn.turn == number)
    return episode.model_copy(update={"turns": turns, "returns": (values[number],)})


def print_episodes(episodes: Iterable[Trajectory], console: Console) -> None:
    """Prints every episode with all its turns."""
    for number, episode in enumerate(episodes):
        if number:
            console.print()
        _print_head(console, episode)
        for at in range(len(episode.turns)):
            _print_turn(console, episode, at)
        console.print()
        console.print(turns_table(episode.turns, returns_of(episode), episode.model))


def write_json(episodes: Iterable[Trajectory], stream: TextIO) -> None:
    """Writes a JSON array of the recorded episodes, one per line, as a stream."""
    before = "[\n"
    for episode in episodes:
        stream.write(f"{before}{json.dumps(episode.model_dump(mode='json'), allow_nan=False)}")
        before = ",\n"
    stream.write("\n]\n")


def print_diff(episode: Trajectory, turns: tuple[int, int], console: Console) -> None:
    """Prints what changed in the kernel from one turn to another.

    Raises:
        BadInput: if the episode has no such turn.
    """
    numbers = [turn.turn for turn in episode.turns]
    for number in turns:
        if number not in numbers:
            raise BadInput(f"there is no turn {number}; the episode has {len(numbers)}")
    look = Look(console.width, base=turns[0])
    show_lines(console, pane_lines(episode, numbers.index(turns[1]), "diff", look))


def follow(library: Library, choice: Choice, console: Console) -> None:
    """Prints turns as they are recorded, until interrupted."""
    printed: dict[str, int] = {}
    while True:
        library.advance()
        for row in library.rows:
            if passes(row, choice) and len(row.marks) != printed.get(row.episode_id, -1):
                read = library.episode(row)
                if isinstance(read, Trajectory):
                    _print_new(console, read, printed)
        time.sleep(_LOOK)
        library.refresh()


def _print_new(console: Console, episode: Trajectory, printed: dict[str, int]) -> None:
    known = printed.get(episode.episode_id)
    if known is None:
        _print_head(console, episode)
    for at in range(known or 0, len(episode.turns)):
        _print_turn(console, episode, at)
    printed[episode.episode_id] = len(episode.turns)


def _passing(library: Library, choice: Choice) -> Iterator[Row]:
    """The chosen rows, while the rest is still being read; running episodes come last."""
    done, more = 0, True
    while more:
        more = library.advance(_SLICE)
        yield from (row for row in library.finished[done:] if passes(row, choice))
        done = len(library.finished)
    yield from (row for row in library.running if passes(row, choice))


def passes(row: Row, choice: Choice) -> bool:
    """Whether an episode matches the choice."""
    return row.episode_id.startswith(choice.episode) and choice.query.matches(row)


def _name_bad(library: Library, errors: Console) -> None:
    for line in library.bad:
        show(errors, f"{line}; it is left out", "red")


def _nothing(library: Library, choice: Choice, longest: int) -> BadInput:
    """Why nothing was chosen."""
    chosen = any(_passing(library, choice))
    if not library.rows or (chosen and choice.turn is None):
        return BadInput(f"{library.path} has no readable trajectory")
    if longest and choice.turn is not None:
        return BadInput(f"there is no turn {choice.turn}; the longest episode has {longest}")
    return BadInput(
        f"no trajectory of the {len(library.rows)} in {library.path} matches; "
        "use a wider filter, or none"
    )


def _print_head(console: Console, episode: Trajectory) -> None:
    show(console, clean(f"episode {episode.episode_id}"), "bold")
    for name, value in episode_facts(episode).items():
        show(console, clean(f"  {name:<8} {value}"))


def _print_turn(console: Console, episode: Trajectory, at: int) -> None:
    turn, look = episode.turns[at], Look(console.width, wrap=False)
    console.print()
    show(console, f"turn {turn.turn}", "bold")
    show_lines(console, pane_lines(episode, at, "kernel", look))
    show_lines(console, [turn_line(turn)])
    show(console, unfenced(turn.feedback))
