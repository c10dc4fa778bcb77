"""Trajectories to and from the formats of others.

To `atif` (harbor's trajectory format; read back without loss), `chat` (OpenAI chat JSONL, an
episode a line), `inspect` (an Inspect log), `csv` (a row a turn) and `turns` (a training sample a
turn: prompt as sent, reply, score, return). From ATIF that we wrote, and from the run folders of
KernelBench.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from kevin_env.app.convert.formats import (
    chat,
    from_atif,
    to_atif,
    turn_samples,
    write_csv,
    write_inspect,
)
from kevin_env.app.errors import BadInput
from kevin_env.app.kernelbench_run import is_run, read_run
from kevin_env.app.writing import whole, write_text
from kevin_env.record import Trajectory

FORMATS = ("atif", "chat", "inspect", "csv", "turns")

_LINES: dict[str, Callable[[Trajectory], Iterable[dict[str, Any]]]] = {
    "atif": lambda episode: [to_atif(episode)],
    "chat": lambda episode: [chat(episode)],
    "turns": turn_samples,
}


def convert(episodes: Iterable[Trajectory], to: str, out: Path | None) -> None:
    """Writes episodes in another format.

    Args:
        episodes: read one at a time, except for an Inspect log.
        to: one of `FORMATS`.
        out: a file; for `atif` also a folder, which gets a file an episode; None for stdout.

    Raises:
        BadInput: if there is no such format, or `out` cannot be written.
    """
    if to not in FORMATS:
        raise BadInput(f"--to {to!r} is unknown; there are {', '.join(FORMATS)}")
    try:
        if to == "atif" and out is not None and out.suffix != ".jsonl":
            _write_documents(episodes, out)
            return
        with _stream(out) as stream:
            _write(episodes, to, stream)
    except BrokenPipeError:  # who reads has enough
        raise
    except OSError as error:
        raise BadInput(f"cannot write {out or 'to stdout'}: {error.strerror or error}") from error


def read_foreign(path: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    """The trajectories in a KernelBench run folder, or in ATIF: a file, one document a line or
    alone, or a folder.

    Args:
        path: where.
        trouble: is told, in one line each, what is left out.

    Raises:
        BadInput: if nothing there can be read.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist; give a KernelBench run folder, or an ATIF file")
    found = read_run(path, trouble) if is_run(path) else _read_atif(path, trouble)
    first = next(found, None)
    if first is None:
        raise BadInput(
            f"{path} holds neither a KernelBench run (with eval_results.json) nor ATIF that kevin-env wrote"
        )
    yield first
    yield from found


def _read_atif(path: Path, trouble: Callable[[str], None]) -> Iterator[Trajectory]:
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    for file in files:
        for place, text in _documents(file):
            try:
                yield from_atif(json.loads(text))
            except (ValueError, RecursionError) as error:
                trouble(f"{file}{place}: {str(error).splitlines()[0]}; it is left out")


def _documents(file: Path) -> Iterator[tuple[str, str]]:
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix != ".jsonl":
        yield "", text
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f" line {number}", line


def _write_documents(episodes: Iterable[Trajectory], out: Path) -> None:
    """One document to a `.json`; several to a folder, named by their episodes."""
    if out.suffix == ".json":
        first, *more = episodes
        if more:
            raise BadInput(
                f"{len(more) + 1} episodes do not go into {out}: give a folder or a .jsonl, or say --episode"
            )
        write_text(out, _json(to_atif(first)) + "\n")
        return
    out.mkdir(parents=True, exist_ok=True)
    for number, episode in enumerate(episodes, start=1):
        # Not the id alone: it comes from a file, and must not lead elsewhere.
        name = "".join(sign for sign in episode.episode_id if sign.isalnum() or sign in "-_")[:64]
        write_text(out / f"{number:06}-{name}.json", _json(to_atif(episode)) + "\n")


def _write(episodes: Iterable[Trajectory], to: str, stream: TextIO) -> None:
    if to == "csv":
        write_csv(episodes, stream)
    elif to == "inspect":
        write_inspect(episodes, stream)
    else:
        for episode in episodes:
            stream.writelines(f"{_json(line)}\n" for line in _LINES[to](episode))


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
