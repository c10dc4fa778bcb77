"""The episodes of a trajectory file, or of every one in a folder, however large.

Files are read in slices that leave time to draw, the newest lines first for a screen. Of each line
only a row is kept, with the place where it stands; an episode is read whole when it is opened.
"""

import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.rows import Place, Row, read_row, row_of
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, partial_path, read_line, read_running

_PARTIAL = ".partial.jsonl"
_BLOCK = 1 << 20
"""Bytes read at a time from the end of a file."""


class Library:
    """The episodes of a file or folder. Not thread-safe.

    Args:
        path: a trajectory file, or a folder that is searched for `*.jsonl`.
        out: a file that is written at the same time, and is therefore not read.
        newest_first: whether files are read from their ends.

    Raises:
        BadInput: if there is none, or `out` is all there is.
    """

    def __init__(self, path: Path, out: Path | None = None, newest_first: bool = False) -> None:
        self.path = path
        self._out, self._newest_first = out, newest_first
        if out is not None and path.is_file() and _same(path, out):
            raise BadInput(f"{out} is what is to be read: write to another file")
        self.finished: list[Row] = []
        """The rows of finished episodes, in the order of reading."""
        self.missing: list[BadLine] = []
        """Files, and lines of running episodes, that cannot be read."""
        self._running: list[Row] = []
        self._bad: list[tuple[Place, str]] = []
        self._ended: set[tuple[Path, str]] = set()
        self._ends: dict[Path, int] = {}
        """Up to where each file is read, or being read."""
        self._total = self._done = 0
        self._stamp: object = None
        self._reading: Iterator[None] = iter(())
        self.refresh()
        if not self._ends:
            said = "holds no trajectory file (*.jsonl)"
            raise BadInput(f"{path} {said}" if path.is_dir() else f"no trajectory file {path}")

    @property
    def rows(self) -> list[Row]:
        """One row per episode read so far, in the order of the files; running ones come last."""
        return [*sorted(self.finished, key=in_file), *self.running]

    @property
    def running(self) -> list[Row]:
        """The rows of running episodes."""
        return [row for row in self._running if row.key not in self._ended]

    @property
    def unreadable(self) -> int:
        """How many lines cannot be read."""
        return len(self._bad) + len(self.missing)

    @property
    def bad(self) -> list[BadLine]:
        """The lines that cannot be read."""
        return [*(_bad_line(*each) for each in sorted(self._bad, key=_order)), *self.missing]

    @property
    def progress(self) -> float:
        """The share of the files that has been read, 0 to 1."""
        return self._done / self._total if self._total else 1.0

    def advance(self, seconds: float = math.inf) -> bool:
        """Reads for about that long, by default to the end. Returns whether there may be more."""
        end = time.monotonic() + seconds
        return any(time.monotonic() > end for _ in self._reading)

    def refresh(self) -> bool:
        """Whether there are new files, lines or turns; `advance` then reads the lines."""
        paths = [each for each in _trajectory_files(self.path) if not self._is_out(each)]
        stamp = [(each, _stamp(each), _stamp(partial_path(each))) for each in paths]
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        sizes = dict.fromkeys(self._ends, 0) | {path: size for path, (size, _), _ in stamp}
        for path, size in sizes.items():
            if size < self._ends.get(path, 0):  # it was replaced
                self._forget(path)
        parts = [(path, self._ends.get(path, 0), size) for path, size in sizes.items()]
        self._total += sum(size - start for _, start, size in parts)
        self._ends = sizes
        # Generators, so that the newest lines come before those of an earlier refresh.
        self._reading = itertools.chain(*map(self._read, parts), self._reading)
        self._look_at_running(paths)
        return True

    def episode(self, row: Row) -> Trajectory | BadLine:
        """The complete episode of a row, even if it has ended since the row was read."""
        place = row.place
        if place.running:
            for each in read_running(place.path):
                if isinstance(each, Trajectory) and each.episode_id == row.episode_id:
                    return each
            self.refresh()
            self.advance(1.0)
            place = next((each.place for each in self.finished if each.key == row.key), place)
        try:
            line = read_bytes(place)
        except OSError as error:
            return _bad_line(place, f"is no longer there: {error.strerror}")
        read = read_line(place.path, 0, line)
        return read if isinstance(read, Trajectory) else _bad_line(place, read.reason)

    def _is_out(self, path: Path) -> bool:
        return self._out is not None and _same(path, self._out)

    def _read(self, part: tuple[Path, int, int]) -> Iterator[None]:
        path, start, size = part
        left = size - start
        try:
            with path.open("rb") as file:
                lines = _backwards if self._newest_first else _forwards
                for at, line in lines(file, start, size):
                    left, self._done = left - len(line), self._done + len(line)
                    self._take(Place(path, at, len(line)), line)
                    yield
        except OSError as error:
            if size:
                self.missing.append(BadLine(path, 1, f"cannot be read: {error.strerror}"))
        self._done += left  # it may have become shorter

    def _take(self, place: Place, line: bytes) -> None:
        if not line.strip():
            return
        try:
            row = read_row(line, place)
        except ValueError as error:
            whole = line.endswith(b"\n")
            if not whole:  # what is missing may still come
                self._ends[place.path] = place.at
                self._done, self._total = self._done - len(line), self._total - len(line)
            self._bad.append((place, str(error) if whole else f"half-written: {error}"))
        else:
            self._ended.add(row.key)
            self.finished.append(row)

    def _forget(self, path: Path) -> None:
        self._ends.pop(path)
        self.finished = [row for row in self.finished if row.place.path != path]
        self._bad = [each for each in self._bad if each[0].path != path]
        self._ended = {row.key for row in self.finished}

    def _look_at_running(self, paths: list[Path]) -> None:
        """Reads the running episodes, and half-written lines once more."""
        self._bad = [each for each in self._bad if not each[1].startswith("half-written")]
        self.missing, self._running = [], []
        for path in paths:
            place = Place(path, 0, 0, running=True)
            for each in read_running(path):
                if isinstance(each, BadLine):
                    self.missing.append(each)
                else:
                    self._running.append(row_of(each, place))


def holds(row: Row, text: str) -> bool:
    """Whether an episode's record contains a text, ignoring case; False if it is gone."""
    try:
        line = read_bytes(row.place).lower()
    except OSError:
        return False
    return any(
        json.dumps(text, ensure_ascii=ascii)[1:-1].lower().encode() in line
        for ascii in (True, False)
    )


def read_bytes(place: Place) -> bytes:
    """The recorded bytes of an episode; for a running one, the whole partial file."""
    if place.running:
        partial = partial_path(place.path)
        return partial.read_bytes() if partial.exists() else b""
    with place.path.open("rb") as file:
        file.seek(place.at)
        return file.read(place.size)


def _forwards(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines between two offsets, each with its own."""
    file.seek(start)
    for line in file:
        if start >= end:
            return
        yield start, line
        start += len(line)


def _backwards(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """As `_forwards`, from the last line to the first."""
    rest = b""  # a line whose beginning is in an earlier block
    while end > start:
        begin = max(end - _BLOCK, start)
        file.seek(begin)
        data = file.read(end - begin) + rest
        *ended, last = data.split(b"\n")
        lines = [*(line + b"\n" for line in ended), *([last] if last else [])]
        rest = lines.pop(0) if begin > start else b""
        at = begin + len(data)
        for line in reversed(lines):
            at -= len(line)
            yield at, line
        end = begin


def _bad_line(place: Place, reason: str) -> BadLine:
    """With the number of the line, which is counted only now."""
    number = 1
    try:
        with place.path.open("rb") as file:
            for at, _ in _forwards(file, 0, place.at):
                number += at < place.at
    except OSError:
        pass
    return BadLine(place.path, number, reason)


def in_file(row: Row) -> tuple[bool, Path, int]:
    """A sort key: the order of the files, with running episodes last."""
    return row.place.running, row.place.path, row.place.at


def _order(bad: tuple[Place, str]) -> tuple[Path, int]:
    return bad[0].path, bad[0].at


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.exists() and one.samefile(other)


def _trajectory_files(path: Path) -> list[Path]:
    if path.is_dir():
        found = (each for each in path.rglob("*.jsonl") if each.is_file())
        return sorted({each.with_name(each.name.removesuffix(_PARTIAL)) for each in found})
    return [path] if path.exists() or partial_path(path).exists() else []


def _stamp(path: Path) -> tuple[int, int]:
    """Size and modification time; zeros if there is no such file."""
    try:
        facts = path.stat()
    except OSError:
        return (0, 0)
    return facts.st_size, facts.st_mtime_ns
