"""The trajectory file, one JSON line per finished episode, and the file of running episodes.

Running episodes are in `FILE.partial.jsonl`: a header line, then one line per turn, flushed, so
that a kill loses at most the running turn. At the end of an episode, its trajectory is appended to
FILE and its partial lines are removed. Several processes can write both files: each write holds an
exclusive lock on FILE, which is only appended to, while the partial file is replaced.
"""

import codecs
import contextlib
import errno
import fcntl
import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import from_json

from kevin_env.problem import KernelFile, Problem
from kevin_env.record import SCHEMA, Trajectory, Turn, best_turn

_Read = TypeVar("_Read")
_UNFINISHED = {"turns", "returns", "stop_reason", "secret"}
"""Fields missing from the header line. The secret is not on disk while submissions run."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be read. `line` counts from 1."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path} line {self.line}: {self.reason}"


def partial_path(path: str | Path) -> Path:
    """The file of the running episodes of a trajectory file."""
    return Path(f"{path}.partial.jsonl")


class Recorder:
    """Writes episodes to a trajectory file, safely from several threads and processes.

    Args:
        path: the trajectory file; it and its folder are created if missing.

    Raises:
        OSError: from every method, if the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def begin(self, trajectory: Trajectory) -> None:
        """Writes the header of a running episode and the turns that it already has.

        For readers, a header restarts its episode.
        """
        header = trajectory.model_dump_json(exclude=_UNFINISHED)
        lines = [header, *(_turn_line(trajectory.episode_id, turn) for turn in trajectory.turns)]
        with self._locked():
            append_lines(partial_path(self.path), lines)

    def add(self, episode_id: str, turn: Turn) -> None:
        """Writes one turn of a running episode."""
        with self._locked():
            append_lines(partial_path(self.path), [_turn_line(episode_id, turn)])

    def finish(self, trajectory: Trajectory) -> None:
        """Writes a finished episode whole, then removes its partial lines."""
        with self._locked():
            append_lines(self.path, [trajectory.model_dump_json()])
            self._forget(trajectory.episode_id)

    def require(self) -> None:
        """Checks that the file can be written, before there is anything to record.

        Raises:
            OSError: if it cannot, or has something else in it.
        """
        with self._locked(), self.path.open("rb") as file:
            if file.read(1) not in (b"", b"{"):
                raise OSError(errno.EEXIST, "not a trajectory file; choose another name", self.path)

    def episode(self, episode_id: str) -> Trajectory:
        """One recorded episode, read while no other process writes.

        Raises:
            LookupError: if it is not there.
        """
        with self._locked():
            for each in itertools.chain(read_running(self.path), read_trajectories(self.path)):
                if isinstance(each, Trajectory) and each.episode_id == episode_id:
                    return each
        raise LookupError(f"no episode {episode_id} in {self.path}")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _forget(self, episode_id: str) -> None:
        """Removes an episode's partial lines. Unreadable lines stay."""
        partial = partial_path(self.path)
        lines = [line for _, line, _ in _lines(partial)]
        kept = [line for line in lines if not _belongs(line, episode_id)]
        if not kept:
            partial.unlink(missing_ok=True)
        elif len(kept) < len(lines):
            scratch = partial.with_name(f"{partial.name}.tmp")
            try:
                scratch.write_bytes(b"".join(kept))
                scratch.replace(partial)
            except (
                OSError
            ):  # the disk is full: readers know from the finished line that the episode has ended
                scratch.unlink(missing_ok=True)


def read_trajectories(path: str | Path) -> Iterator[Trajectory | BadLine]:
    """All episodes of a trajectory file: finished ones, then those running or cut off.

    A line that cannot be read is yielded as a `BadLine`. Unknown keys are ignored.

    Raises:
        FileNotFoundError: if there is neither the file nor its partial file.
    """
    path = Path(path)
    # The partial file first: an episode that ends between the two readings is then seen twice,
    # never missed.
    running = list(read_running(path))
    if not path.exists() and not running:
        raise FileNotFoundError(errno.ENOENT, "no such trajectory file", str(path))
    finished: set[str] = set()
    for number, line, whole in _lines(path):
        trajectory = read_line(path, number, line, whole)
        if isinstance(trajectory, Trajectory):
            finished.add(trajectory.episode_id)
        yield trajectory
    for trajectory in running:
        if isinstance(trajectory, BadLine) or trajectory.episode_id not in finished:
            yield trajectory


def best_kernel(path: str | Path, problem: Problem) -> KernelFile | None:
    """The fastest recorded kernel for this version of a problem; None if none was timed.

    Raises:
        FileNotFoundError: as `read_trajectories`.
    """
    turns = [
        turn
        for each in read_trajectories(path)
        if isinstance(each, Trajectory) and each.problem.sha256 == problem.sha256
        for turn in each.turns
    ]
    best = best_turn(turns)
    if best is None or best.submission is None:
        return None
    return KernelFile(name=f"turn {best.turn}", code=best.submission.code)


def read_running(path: str | Path) -> Iterator[Trajectory | BadLine]:
    """The episodes of a trajectory file that are running or were cut off."""
    partial = partial_path(path)
    yield from _running_episodes(partial, list(_lines(partial)))


def _episode(line: bytes, fields: dict[str, Any]) -> Trajectory:
    if fields.get("schema") != SCHEMA:
        raise ValueError(f"schema is {fields.get('schema')!r}, this version reads {SCHEMA!r}")
    return Trajectory.model_validate_json(line, extra="ignore")


def _header_or_turn(line: bytes, fields: dict[str, Any]) -> Trajectory | tuple[str, Turn]:
    """A line of the partial file; a turn comes with the ID of its episode."""
    if "turn" not in fields:
        return _episode(line, fields)
    return str(fields.get("episode_id")), Turn.model_validate_json(line, extra="ignore")


def _running_episodes(
    path: Path, lines: list[tuple[int, bytes, bool]]
) -> Iterator[Trajectory | BadLine]:
    """Puts header and turn lines together, by episode, in the order in which the episodes began.

    A turn that does not follow the one before it cannot be kept: one `BadLine` per episode names
    all of them.
    """
    episodes: dict[str, Trajectory] = {}
    loose: dict[str, dict[int, int]] = {}
    for number, line, whole in lines:
        read = read_line(path, number, line, whole, _header_or_turn)
        if isinstance(read, BadLine):
            yield read
        elif isinstance(read, Trajectory):
            episodes[read.episode_id] = read
            loose.pop(read.episode_id, None)
        else:
            episode_id, turn = read
            begun = episodes.get(episode_id)
            if begun is not None and turn.turn == len(begun.turns) + 1:
                turns = (*begun.turns, turn)
                episodes[episode_id] = begun.model_copy(update={"turns": turns})
            else:
                loose.setdefault(episode_id, {})[turn.turn] = number
    for episode_id, turns in loose.items():
        why = _gap(episode_id, list(turns), episodes.get(episode_id))
        yield BadLine(path, min(turns.values()), why)
    yield from episodes.values()


def _gap(episode_id: str, loose: list[int], begun: Trajectory | None) -> str:
    """Why turns of an episode are left out, and how it continues."""
    which = f"turn{'s' * (len(loose) > 1)} {', '.join(map(str, loose))} of episode {episode_id}"
    if begun is None:
        return f"{which} cannot be used: the first line of the episode is missing"
    last = len(begun.turns)
    return f"{which} cannot be used after turn {last}: when resumed, it plays turn {last + 1} again"


def read_line(
    path: Path,
    number: int,
    line: bytes,
    whole: bool = True,
    parse: Callable[[bytes, dict[str, Any]], _Read] = _episode,
) -> _Read | BadLine:
    """One line of a trajectory file, by default a whole episode.

    Args:
        path: the file, for messages.
        number: number of the line, from 1.
        line: the line.
        whole: whether the line is complete.
        parse: reads the line, given also its fields; may raise ValueError.
    """
    line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return parse(line, _fields(line))
    except ValidationError as error:
        first = error.errors()[0]
        return BadLine(path, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    except ValueError as error:
        return BadLine(path, number, str(error) if whole else f"half-written: {error}")


def _fields(line: bytes) -> dict[str, Any]:
    """The fields of a line. Raises ValueError, and nothing else, if it is no JSON object."""
    values = from_json(line)  # limits the nesting itself, without a RecursionError
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", values)


def _belongs(line: bytes, episode_id: str) -> bool:
    try:
        return _fields(line).get("episode_id") == episode_id
    except ValueError:
        return False


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Line number, line, and whether the line is complete; empty lines are skipped."""
    try:
        file = path.open("rb")
    except FileNotFoundError:  # a partial file is removed when its last episode ends
        return
    with file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line, line.endswith(b"\n")


def _turn_line(episode_id: str, turn: Turn) -> str:
    """The turn as a JSON object whose first field is its episode."""
    return f'{{"episode_id":{json.dumps(episode_id)},{turn.model_dump_json()[1:]}'


def append_lines(path: Path, lines: list[str]) -> None:
    """Appends all lines or none, on a new line after one that a killed writer left incomplete.

    Raises:
        OSError: if the file cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    with os.fdopen(descriptor, "rb+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        rest = memoryview(b"\n" * broken + "".join(f"{line}\n" for line in lines).encode())
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError as error:  # the disk is full: no line is better than half a line
            with contextlib.suppress(OSError):  # some files cannot be truncated, such as /dev/full
                file.truncate(size)
            raise OSError(error.errno, error.strerror, str(path)) from error
