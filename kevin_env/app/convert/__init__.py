"""Converts trajectories to other formats.

To `chat` (OpenAI chat JSONL, a line per episode), `inspect` (an Inspect log), `csv` (a row per
turn) and `turns` (a training sample per turn: prompt as sent, reply, score, return).
"""

import contextlib
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

from kevin_env.app.convert.formats import (
    chat,
    turn_samples,
    write_csv,
    write_inspect,
)
from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.samples import gather, without_texts
from kevin_env.app.writing import whole
from kevin_env.record import Trajectory

Format = Literal["chat", "inspect", "csv", "turns"]

_IN_MEMORY = 1 << 28
"""Bytes of episodes beyond which they wait on disk."""

_LINES: dict[str, Callable[[Trajectory], Iterable[dict[str, Any]]]] = {
    "chat": lambda episode: [chat(episode)],
    "turns": turn_samples,
}


def convert(episodes: Iterable[Trajectory], to: Format, out: Path | None) -> Path | None:
    """Writes episodes in another format. Returns the file or folder; None for stdout.

    Leaves out what the figures leave out, such as an episode that was continued or pruned.

    Args:
        episodes: in the order of their file. For `inspect` all must fit in memory.
        to: the format.
        out: a file; None for stdout; for `inspect` without an ending a folder with one log.

    Raises:
        BadInput: if nothing is left to write.
        OSError: if `out` cannot be written.
    """
    episodes = (each for each in _samples(episodes) if each.turns or to == "inspect")
    first = next(episodes, None)  # before anything is written
    if first is None:
        raise BadInput("there is nothing to export: no trajectory has a turn")
    episodes = itertools.chain((first,), episodes)
    if to == "inspect" and out is not None and not out.suffix and not _special(out):
        out.mkdir(parents=True, exist_ok=True)
        out = out / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}_kevin-env.json"  # else not listed
    with _stream(out) as stream:
        if to == "csv":
            write_csv(episodes, stream)
        elif to == "inspect":
            write_inspect(episodes, stream)
        else:
            for episode in episodes:
                stream.writelines(f"{_json(line)}\n" for line in _LINES[to](episode))
    return out


def _samples(episodes: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """The episodes that are samples in the figures of their file."""
    read: list[Trajectory] = []
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        for each in episodes:
            file.write(each.model_dump_json().encode() + b"\n")
            # Equal numbers mean nothing if the episodes are of several runs.
            read.append(without_texts(each).model_copy(update={"sample": None}))
        found = gather(read, {})
        samples = {id(sample.trajectory) for problem in found for sample in problem.samples}
        file.seek(0)
        for line, each in zip(file, read, strict=True):
            if id(each) in samples:
                yield Trajectory.model_validate_json(line)


def _special(out: Path) -> bool:
    """Whether it is a pipe or a device."""
    return out.exists() and not (out.is_dir() or out.is_file())


@contextlib.contextmanager
def _stream(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    with whole(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        yield file
        file.flush()


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
