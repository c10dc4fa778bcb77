"""Converts trajectories to and from other formats.

To `atif` (harbor's trajectory format), `chat` (OpenAI chat JSONL, a line per episode),
`inspect` (an Inspect log), `csv` (a row per turn) and `turns` (a training sample per turn: prompt
as sent, reply, score, return). From KernelBench run folders.
"""

import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

from kevin_env.app.convert.formats import (
    chat,
    to_atif,
    turn_samples,
    write_csv,
    write_inspect,
)
from kevin_env.app.errors import BadInput
from kevin_env.app.kernelbench_run import is_run, read_run
from kevin_env.app.writing import whole, write_text
from kevin_env.record import Trajectory

Format = Literal["atif", "chat", "inspect", "csv", "turns"]

_LINES: dict[str, Callable[[Trajectory], Iterable[dict[str, Any]]]] = {
    "atif": lambda episode: [to_atif(episode)],
    "chat": lambda episode: [chat(episode)],
    "turns": turn_samples,
}


def convert(episodes: Iterable[Trajectory], to: Format, out: Path | None) -> Path | None:
    """Writes episodes in another format. Returns the file or folder; None for stdout.

    Args:
        episodes: at least one; consumed one at a time, except for `inspect`.
        to: the format.
        out: a file; None for stdout; without an ending, for `atif` a folder with a file per
            episode, and for `inspect` a folder with one log.

    Raises:
        BadInput: if several episodes do not fit into `out`.
        OSError: if `out` cannot be written.
    """
    episodes = iter(episodes)
    episodes = itertools.chain((next(episodes),), episodes)  # raises before anything is written
    if to == "atif" and out is not None and out.suffix != ".jsonl":
        _write_documents(episodes, out)
        return out
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


def read_foreign(path: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    """Reads a KernelBench run folder.

    `trouble` is called with a line for each item that is left out. Raises BadInput if nothing there
    can be read.
    """
    if not is_run(path):
        raise BadInput(f"{path} is no KernelBench run: it holds no eval_results.json")
    yield from read_run(path, trouble)


def _write_documents(episodes: Iterable[Trajectory], out: Path) -> None:
    """Writes one document to a `.json` file, or a file per episode to a folder."""
    if out.suffix == ".json":
        first, *more = episodes
        if more:
            instead = "use a folder or .jsonl, or --episode"
            raise BadInput(f"{len(more) + 1} episodes do not fit into {out}: {instead}")
        write_text(out, _json(to_atif(first)) + "\n")
        return
    out.mkdir(parents=True, exist_ok=True)
    for number, episode in enumerate(episodes, start=1):
        # Sanitised, since an untrusted id could be a path.
        name = "".join(sign for sign in episode.episode_id if sign.isalnum() or sign in "-_")[:64]
        write_text(out / f"{number:06}-{name}.json", _json(to_atif(episode)) + "\n")


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
