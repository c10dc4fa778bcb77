"""KernelBench's problems as text, from a checkout or the Hugging Face data set.

KEVIN_ENV_KERNELBENCH names a checkout; otherwise the package `datasets` loads the data set. Levels
are 1 to 3: level 4 loads pretrained models from the network.
"""

import functools
import os
import re
from dataclasses import dataclass
from importlib.util import decode_source
from pathlib import Path
from typing import Any

from kevin_env.hub import cache_if_offline

PREFIX = "kernelbench:"
"""Prefix of the IDs, followed by `level1/23_Softmax`."""
VARIABLE = "KEVIN_ENV_KERNELBENCH"
DATASET = "ScalingIntelligence/KernelBench"
LEVELS = (1, 2, 3)

_NAME = re.compile(r"(?:level(?P<level>\d+)(?:/(?:(?P<file>(?P<number>\d+)(?:_[^/]*)?))?)?)?")


class KernelBenchError(LookupError):
    """KernelBench, or a problem of it, is not available. The message has the remedy."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem of KernelBench."""

    level: int
    number: int
    stem: str
    """Such as `23_Softmax`."""
    source: str
    path: str = ""
    """Of its file; empty when it comes from the data set."""

    @property
    def id(self) -> str:
        """Such as `kernelbench:level1/23_Softmax`."""
        return f"{PREFIX}level{self.level}/{self.stem}"


def entries(name: str) -> list[Entry]:
    """The problems that a name selects, in order; at least one.

    Args:
        name: `kernelbench:` for all of them, `kernelbench:level1` for a level,
            `kernelbench:level1/23` or `kernelbench:level1/23_Softmax` for one.

    Raises:
        KernelBenchError: if there is no such problem, or no KernelBench.
    """
    match = _NAME.fullmatch(name.removeprefix(PREFIX).removesuffix(".py"))
    if match is None:
        raise KernelBenchError(
            f"{name!r} is not a KernelBench name; write {PREFIX}level1/23 or {PREFIX}level1"
        )
    level, number, file = match["level"], match["number"], match["file"]
    if level and int(level) not in LEVELS:
        raise KernelBenchError(
            f"only KernelBench's levels 1 to 3 are supported, not {level}; write {PREFIX}level1/23"
        )
    candidates = [entry for each in LEVELS if level in (None, str(each)) for entry in _level(each)]
    if number is None:
        return candidates
    chosen = [entry for entry in candidates if entry.number == int(number)]
    if not chosen:
        raise KernelBenchError(
            f"KernelBench's level {level} has no problem {number}; "
            f"`{PREFIX}level{level}` selects all of it"
        )
    if file not in (number, chosen[0].stem):
        raise KernelBenchError(
            f"problem {number} of KernelBench's level {level} is {chosen[0].id}, not {file}"
        )
    return chosen


def _level(level: int) -> list[Entry]:
    folder = os.environ.get(VARIABLE)
    level_entries = _from_checkout(Path(folder), level) if folder else _from_dataset(level)
    return sorted(level_entries, key=lambda entry: entry.number)


def _from_checkout(root: Path, level: int) -> list[Entry]:
    for folder in (root / f"level{level}", root / "KernelBench" / f"level{level}"):
        if folder.is_dir():
            files = [path for path in folder.glob("*.py") if _number(path.stem) is not None]
            return [_entry(level, path.stem, _text(path), str(path.resolve())) for path in files]
    raise KernelBenchError(
        f"{VARIABLE} is {root}, which has no folder level{level}; "
        "set it to a checkout of KernelBench"
    )


def _text(path: Path) -> str:
    try:
        return decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise KernelBenchError(f"cannot read {path}: {error}") from error


def _from_dataset(level: int) -> list[Entry]:
    rows = _rows(level)
    return [_entry(level, str(row["name"]).removesuffix(".py"), row["code"]) for row in rows]


@functools.cache
def _rows(level: int) -> list[dict[str, Any]]:
    """The rows of a level, each with `problem_id`, `name` (such as `23_Softmax`) and `code`."""
    remedy = f"set {VARIABLE} to a checkout of KernelBench"
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise KernelBenchError(
            f"no KernelBench here: {remedy}, or `pip install datasets` to load {DATASET}"
        ) from error
    try:
        with cache_if_offline():
            rows: Any = datasets.load_dataset(DATASET, split=f"level_{level}")
            return list(rows)
    except Exception as error:  # another package, the network and a cache may raise anything
        raise KernelBenchError(
            f"{DATASET} could not be loaded ({type(error).__name__}: {error}); {remedy}"
        ) from error


def _entry(level: int, stem: str, source: str, path: str = "") -> Entry:
    return Entry(level=level, number=_number(stem) or 0, stem=stem, source=source, path=path)


def _number(stem: str) -> int | None:
    prefix = re.match(r"(\d+)_", stem)
    return int(prefix[1]) if prefix else None
