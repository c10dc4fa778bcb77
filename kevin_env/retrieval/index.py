"""The index of kernels to retrieve: its files, and the search for similar references.

    FOLDER/index.json     schema, embedding model, dimension, number of pairs
    FOLDER/pairs.jsonl    one pair per line
    FOLDER/vectors.npy    float32[pairs, dimension], rows of length 1; row i belongs to line i

It holds no code to run, and nothing is unpickled.
"""

import functools
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from kevin_env.languages import Name
from kevin_env.outcome import Frozen
from kevin_env.problem import Problem
from kevin_env.retrieval.embedders import INSTALL, Embedder, make_embedder, module_text
from kevin_env.retrieval.operations import Pair, RetrievalError, near_copies, operations
from kevin_env.selection import is_held_out, our_problems

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUILD = "kevin-env index build solutions --out FOLDER"
"""Command that builds a small index from our own solutions."""

LONGEST = 20_000
"""Limit in characters of reference and kernel together; longer ones fit no prompt."""

_TOGETHER = 256
"""Texts to embed between progress reports."""

OnProgress = Callable[[int, int], None]
"""Called with the number of embedded references and the total."""


class Header(Frozen):
    """The content of `index.json`."""

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
    """The pairs of an index by source, and the reasons why others were excluded."""

    pairs: tuple[Pair, ...]
    left_out: Counter[str]


def keep(pairs: Iterable[Pair]) -> Kept:
    """The fastest kernel of each reference and language, and counts of excluded ones."""
    best: dict[tuple[str, str], Pair] = {}
    left_out: Counter[str] = Counter()
    for pair in pairs:
        reason = _exclusion_reason(pair)
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
        raise RetrievalError("these sources have no usable pair; name others")
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
    """Writes the folder; an existing index is replaced.

    Raises:
        RetrievalError: if the folder has other content, or cannot be written.
    """
    if folder.exists() and not (folder / "index.json").is_file():
        raise RetrievalError(f"{folder} exists and is not an index; give another folder")
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
            f"cannot read the index {folder} ({reason}); rebuild it: {BUILD}"
        ) from error
    if (
        vectors.shape != (header.pairs, header.dimension)
        or len(pairs) != header.pairs
        or vectors.dtype != np.float32
    ):
        raise RetrievalError(
            f"the files of the index {folder} do not belong together; rebuild it: {BUILD}"
        )
    return Index(header.model, pairs, vectors)


def _exclusion_reason(pair: Pair) -> str:
    """Why a pair is excluded; empty if it is not."""
    if len(pair.reference) + len(pair.kernel) > LONGEST:
        return "longer than any prompt has room for"
    try:
        module_text(pair.reference)
        operations(pair.reference, pair.entry)
    except RetrievalError:
        return "a reference that does not parse"
    return ""


_KERNELBENCH_LEVELS = 3
"""Up to this level, shipped problems have KernelBench's IDs."""

_OPENING = threading.Lock()


class Found(Frozen):
    """A pair, and the similarity of its reference."""

    pair: Pair
    similarity: float
    """Inner product of the two vectors of length 1: at most 1."""


class Retriever:
    """An index with its model. Thread-safe.

    Args:
        index: the index.
        embedder: the embedder that it was built with.

    Raises:
        RetrievalError: if FAISS is not installed, or the embedder's vectors differ in size.
    """

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._faiss = _faiss()
        self._lock = threading.Lock()
        self._searchers: dict[str, tuple[Any, NDArray[np.intp]]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def find(self, problem: Problem, language: Name) -> Iterator[Found]:
        """All pairs in that language, the most similar first.

        Excludes pairs for the problem itself (by level and number), pairs whose references compute
        nearly the same as it or an earlier pair, and, unless the problem is held out, pairs for
        held-out problems.

        Raises:
            RetrievalError: if the index has no kernel in that language.
        """
        own, held_out = operations(problem.source), is_held_out(problem)
        known: list[tuple[str, ...]] = [own]
        for similarity, pair in self._ranked(problem, language):
            computed = operations(pair.reference, pair.entry)
            if _same_task(pair, problem) or any(near_copies(computed, each) for each in known):
                continue
            if not held_out and _answers_held_out(pair, computed):
                continue
            known.append(computed)
            yield Found(pair=pair, similarity=similarity)

    def _ranked(self, problem: Problem, language: Name) -> Iterator[tuple[float, Pair]]:
        with self._lock:
            searcher, rows = self._searcher(language)
            vector = self._vector(module_text(problem.source))
            similarities, places = searcher.search(vector, len(rows))
        for similarity, place in zip(similarities[0], places[0], strict=True):
            yield float(similarity), self._index.pairs[rows[place]]

    def _searcher(self, language: Name) -> tuple[Any, "NDArray[np.intp]"]:
        if language not in self._searchers:
            rows = np.flatnonzero([pair.language == language for pair in self._index.pairs])
            if not len(rows):
                languages = ", ".join(sorted({pair.language for pair in self._index.pairs}))
                raise RetrievalError(
                    f"the index has no kernels in {language}, only in {languages}; "
                    "add a source that has"
                )
            searcher = self._faiss.IndexFlatIP(self._index.vectors.shape[1])
            searcher.add(self._index.vectors[rows])
            self._searchers[language] = searcher, rows
        return self._searchers[language]

    def _vector(self, text: str) -> "NDArray[np.float32]":
        if text not in self._vectors:
            vector = self._embedder.embed([text])
            if vector.shape[1] != self._index.vectors.shape[1]:
                raise RetrievalError(
                    f"{self._embedder.name} is not the model that the index was built with"
                )
            self._vectors[text] = vector
        return self._vectors[text]


def open_retriever(folder: str) -> Retriever:
    """The retriever of an index on disk, cached until the index is built again.

    Raises:
        RetrievalError: if no folder is given, it has no index, or the extra is not installed.
    """
    if not folder:
        raise RetrievalError(f"retrieved examples need an index: index=FOLDER. Build one: {BUILD}")
    path = Path(folder).expanduser().resolve()
    header = path / "index.json"
    with _OPENING:
        return _opened(path, header.stat().st_mtime_ns if header.is_file() else 0)


@functools.lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> Retriever:
    index = load(path)
    return Retriever(index, make_embedder(index.model))


def _answers_held_out(pair: Pair, computed: tuple[str, ...]) -> bool:
    """Whether a pair is for a held-out problem, by its level and number or by its operations."""
    shipped = next((each for each in _shipped() if _same_task(pair, each)), None)
    if shipped is not None:
        return is_held_out(shipped)
    return any(
        near_copies(computed, operations(each.source)) for each in _shipped() if is_held_out(each)
    )


@functools.cache
def _shipped() -> tuple[Problem, ...]:
    return our_problems()


def _same_task(pair: Pair, problem: Problem) -> bool:
    """Whether the pair is for this problem, by level and number."""
    if pair.level is None or (pair.level, pair.number) != (problem.level, problem.number):
        return False
    return pair.origin == "solutions" or pair.level <= _KERNELBENCH_LEVELS


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise RetrievalError(f"retrieving examples needs FAISS: {INSTALL}") from error
    return faiss
