"""The episodes of a trajectory file, or of every one in a folder, however large.

A file is read once from front to back, in slices that leave time to draw, and of each line only
what a list shows is kept, with the place where the line stands. An episode is read whole when it is
opened.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.rows import Place, Row, read_row, row_of
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, partial_path, read_line, read_running

_PARTIAL = ".partial.jsonl"
_AT_ONCE = 16
"""Lines between checks of the clock."""


@dataclass
class _File:
    """One trajectory file, and how far it has been read."""

    path: Path
    at: int = 0
    """Offset of the next line."""
    line: int = 0
    """Number of lines before it."""
    size: int = 0
    cut: BadLine | None = None
    """The last line, if it is incomplete and cannot be read yet."""
    ended: bool = True
    """Whether the last line read ended in a newline."""
    stamp: tuple[int, int] = (0, 0)
    """Size and modification time of the partial file when it was read."""
    running: list[Row] = field(default_factory=list[Row])
    running_bad: list[BadLine] = field(default_factory=list[BadLine])

    @property
    def unread(self) -> bool:
        """Whether there is more to read."""
        return self.at < self.size and self.cut is None


class Library:
    """The episodes of a file or folder. Not thread-safe.

    Args:
        path: a trajectory file, or a folder that is searched for `*.jsonl`.
        out: a file that is written at the same time, and is therefore not read.

    Raises:
        BadInput: if there is none, or `out` is all there is.
    """

    def __init__(self, path: Path, out: Path | None = None) -> None:
        self.path = path
        self._out = out
        if out is not None and path.is_file() and _same(path, out):
            raise BadInput(f"{out} is what is to be read: write to another file")
        self._files: list[_File] = []
        self._finished: list[Row] = []
        self._known: set[tuple[Path, str]] = set()
        self._bad: list[BadLine] = []
        self.refresh()
        if not self._files:
            if path.is_dir():
                raise BadInput(f"{path} holds no trajectory file (*.jsonl)")
            raise BadInput(f"no trajectory file {path}")

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row per episode read so far, in the order of the files; running ones come last."""
        return (
            *self._finished,
            *(row for file in self._files for row in file.running if row.key not in self._known),
        )

    @property
    def finished(self) -> Sequence[Row]:
        """The rows of finished episodes, the first of `rows`. Grows while files are read."""
        return self._finished

    @property
    def bad(self) -> tuple[BadLine, ...]:
        """The lines that cannot be read."""
        cut = (file.cut for file in self._files if file.cut)
        return (*self._bad, *cut, *(line for file in self._files for line in file.running_bad))

    @property
    def progress(self) -> float:
        """The share of the files that has been read, 0 to 1."""
        size = sum(file.size for file in self._files)
        left = sum(file.size - file.at for file in self._files if file.unread)
        return 1 - left / size if size else 1.0

    def advance(self, seconds: float) -> bool:
        """Reads for about that long. Returns whether there was anything to read."""
        end = time.monotonic() + seconds
        unread = [file for file in self._files if file.unread]
        for file in unread:
            try:
                self._read(file, end)
            except OSError as error:
                why = f"cannot be read: {error.strerror}"
                self._bad.append(BadLine(file.path, file.line + 1, why))
                file.size = file.at
            if time.monotonic() > end:
                break
        return bool(unread)

    def refresh(self) -> bool:
        """Whether there are new files, lines or turns; `advance` then reads the lines."""
        known = {file.path for file in self._files}
        self._files += (_File(path) for path in self._there() if path not in known)
        return any([len(self._files) > len(known), *map(self._look_again, self._files)])

    def _there(self) -> list[Path]:
        found = _trajectory_files(self.path)
        return [path for path in found if self._out is None or not _same(path, self._out)]

    def episode(self, row: Row) -> Trajectory | BadLine:
        """The complete episode of a row, even if it has ended since the row was read."""
        place = row.place
        if place.running:
            for each in read_running(place.path):
                if isinstance(each, Trajectory) and each.episode_id == row.episode_id:
                    return each
            self.refresh()
            self.advance(1.0)
            place = next((each.place for each in self._finished if each.key == row.key), place)
        try:
            return read_line(place.path, place.line, read_bytes(place))
        except OSError as error:
            return BadLine(place.path, place.line, f"is no longer there: {error.strerror}")

    def search(self, text: str, start: int, seconds: float) -> tuple[frozenset[int], int]:
        """Rows from `start` on whose record contains `text`, and the row to continue from.

        Stops after about `seconds`. Case is ignored.
        """
        end, hits, rows = time.monotonic() + seconds, set[int](), self.rows
        for number in range(start, len(rows)):
            if holds(rows[number], text):
                hits.add(number)
            if time.monotonic() > end:
                return frozenset(hits), number + 1
        return frozenset(hits), len(rows)

    def _read(self, file: _File, end: float) -> None:
        with file.path.open("rb") as opened:
            opened.seek(file.at)
            for count, line in enumerate(opened, start=1):
                self._take(file, line)
                if not file.unread or (count % _AT_ONCE == 0 and time.monotonic() > end):
                    return
            # The file may have been truncated.
            file.size = min(file.size, os.fstat(opened.fileno()).st_size)

    def _take(self, file: _File, line: bytes) -> None:
        place = Place(file.path, file.at, len(line), file.line + file.ended)
        whole = line.endswith(b"\n")
        if line.strip():
            try:
                row = read_row(line, place)
                self._known.add(row.key)
                self._finished.append(row)
            except ValidationError as error:
                bad = _reason(place, line, whole, error)
                if not whole:
                    file.cut = bad
                    return
                self._bad.append(bad)
        file.at, file.line, file.ended = place.at + len(line), place.line, whole

    def _look_again(self, file: _File) -> bool:
        """Reads the changes of one file, which may have been replaced by a shorter one."""
        size, _ = _stamp(file.path)
        changed = size != file.size
        if size < file.size:
            file.at, file.line, file.ended = 0, 0, True
            self._finished = [row for row in self._finished if row.place.path != file.path]
            self._bad = [line for line in self._bad if line.path != file.path]
            self._known = {row.key for row in self._finished}
        if changed:
            file.size, file.cut = size, None
        stamp = _stamp(partial_path(file.path))
        if stamp != file.stamp:
            file.stamp, changed = stamp, True
            found = list(read_running(file.path))
            file.running_bad = [each for each in found if isinstance(each, BadLine)]
            place = Place(file.path, 0, 0, 0, running=True)
            file.running = [row_of(each, place) for each in found if isinstance(each, Trajectory)]
        return changed


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


def _reason(place: Place, line: bytes, whole: bool, error: ValidationError) -> BadLine:
    """Why a line cannot be read."""
    bad = read_line(place.path, place.line, line, whole)
    if isinstance(bad, BadLine):
        return bad
    return BadLine(place.path, place.line, error.errors()[0]["msg"])


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
