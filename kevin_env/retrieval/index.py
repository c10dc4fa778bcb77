"""An index on disk: pairs as JSON lines, the vectors of their references as an array, and what both
are.

    FOLDER/index.json     schema, embedding model, dimension, how many pairs
    FOLDER/pairs.jsonl    a pair a line
    FOLDER/vectors.npy    float32[pairs, dimension], rows of length 1; row i belongs to line i

Nothing in it is code, and nothing is unpickled.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, ValidationError

from kevin_env.outcome import Frozen
from kevin_env.retrieval.embedders import Embedder, module_text
from kevin_env.retrieval.operations import operations
from kevin_env.retrieval.pair import Pair, RetrievalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUILD = "kevin-env index build solutions --out FOLDER"
"""What makes a small index without other people's data."""

LONGEST = 20_000
"""Characters of reference and kernel together; what is longer fits no prompt and is left out."""

_TOGETHER = 256
"""Texts that are embedded before progress is told."""

OnProgress = Callable[[int, int], None]
"""Is told how many references are embedded, and how many there are."""


class Header(Frozen):
    """What `index.json` says."""

    format: Literal["kevin-index/1"] = Field(default="kevin-index/1", alias="schema")
    model: str
    dimension: int
    pairs: int


@dataclass(frozen=True)
class Index:
    """Pairs, and the vectors of their references.

    Args:
        model: the embedder's name.
        pairs: in the order of the rows.
        vectors: float32[len(pairs), dimension], rows of length 1.
    """

    model: str
    pairs: tuple[Pair, ...]
    vectors: "NDArray[np.float32]"


@dataclass(frozen=True)
class Kept:
    """What of the sources an index holds, and why the rest was left out."""

    pairs: tuple[Pair, ...]
    left_out: Counter[str]


def keep(pairs: Iterable[Pair]) -> Kept:
    """Of each reference and language the fastest kernel, the first of equals. The rest is counted
    by its reason.
    """
    best: dict[tuple[str, str], Pair] = {}
    left_out: Counter[str] = Counter()
    for pair in pairs:
        reason = _unfit(pair)
        if reason:
            left_out[reason] += 1
            continue
        key = (pair.language, module_text(pair.reference))
        other = best.get(key)
        left_out["slower or the same again"] += other is not None
        if other is None or (pair.speedup or 0) > (other.speedup or 0):
            best[key] = pair
    return Kept(tuple(best.values()), +left_out)


def build(
    pairs: tuple[Pair, ...], embedder: Embedder, on_progress: OnProgress = lambda done, total: None
) -> Index:
    """Embeds the references; each text once.

    Raises:
        RetrievalError: if there is no pair.
    """
    if not pairs:
        raise RetrievalError("these sources hold no pair that can be used; name others")
    texts = [module_text(pair.reference) for pair in pairs]
    unique = list(dict.fromkeys(texts))
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(unique), _TOGETHER):
        parts.append(embedder.embed(unique[start : start + _TOGETHER]))
        on_progress(min(start + _TOGETHER, len(unique)), len(unique))
    rows = {text: row for row, text in enumerate(unique)}
    vectors = np.concatenate(parts)[[rows[text] for text in texts]]
    return Index(embedder.name, pairs, np.ascontiguousarray(vectors, np.float32))


def save(index: Index, folder: Path) -> None:
    """Writes the folder, in the place of an index that is there already.

    Raises:
        RetrievalError: if something else is there, or it cannot be written.
    """
    if folder.exists() and not (folder / "index.json").is_file():
        raise RetrievalError(f"{folder} is there already and is no index; give another folder")
    partial = folder.with_name(f"{folder.name}.partial")
    header = Header(model=index.model, dimension=index.vectors.shape[1], pairs=len(index.pairs))
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        np.save(partial / "vectors.npy", index.vectors, allow_pickle=False)
        with (partial / "pairs.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(pair.model_dump_json() + "\n" for pair in index.pairs)
        (partial / "index.json").write_text(
            header.model_dump_json(by_alias=True) + "\n", encoding="utf-8"
        )
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except OSError as error:
        raise RetrievalError(
            f"cannot write the index {folder}: {error.strerror or error}"
        ) from error


def load(folder: Path) -> Index:
    """Reads an index.

    Raises:
        RetrievalError: if there is none, or its files do not belong together.
    """
    if not (folder / "index.json").is_file():
        raise RetrievalError(f"there is no index at {folder}; build one: {BUILD}")
    try:
        header = Header.model_validate_json((folder / "index.json").read_text(encoding="utf-8"))
        with (folder / "pairs.jsonl").open(encoding="utf-8") as file:
            pairs = tuple(Pair.model_validate_json(line) for line in file)
        vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise RetrievalError(
            f"cannot read the index {folder} ({reason}); build it anew: {BUILD}"
        ) from error
    if (
        vectors.shape != (header.pairs, header.dimension)
        or len(pairs) != header.pairs
        or vectors.dtype != np.float32
    ):
        raise RetrievalError(
            f"the files of the index {folder} do not belong together; build it anew: {BUILD}"
        )
    return Index(header.model, pairs, vectors)


def _unfit(pair: Pair) -> str:
    """Why a pair is left out; empty when it is not."""
    if len(pair.reference) + len(pair.kernel) > LONGEST:
        return "longer than any prompt has room for"
    try:
        module_text(pair.reference)
        operations(pair.reference, pair.entry)
    except RetrievalError:
        return "a reference that does not parse"
    return ""
