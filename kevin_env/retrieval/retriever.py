"""Finds the pairs whose references are likest to a problem, without those that give its answer
away.
"""

import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kevin_env.outcome import Frozen
from kevin_env.problem import Problem
from kevin_env.retrieval.embedders import INSTALL, Embedder, make_embedder, module_text
from kevin_env.retrieval.index import BUILD, Index, load
from kevin_env.retrieval.operations import near_copies, operations
from kevin_env.retrieval.pair import Language, Pair, RetrievalError
from kevin_env.selection import is_held_out, our_problems

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KERNELBENCH_LEVELS = 3
"""Up to this level ours have KernelBench's ids."""

_OPENING = threading.Lock()


class Found(Frozen):
    """A pair, and how like its reference is."""

    pair: Pair
    likeness: float
    """Inner product of the two vectors of length 1: at most 1."""


class Retriever:
    """An index with the model that it was made with. May be asked from several threads.

    Args:
        index: what is looked through.
        embedder: the one that it was built with.

    Raises:
        RetrievalError: if FAISS is not installed, or the embedder makes other vectors.
    """

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._faiss = _faiss()
        self._lock = threading.Lock()
        self._searchers: dict[str, tuple[Any, NDArray[np.intp]]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def find(self, problem: Problem, language: Language) -> Iterator[Found]:
        """Pairs in that language, the likest first, until there are no more.

        Left out are those for the problem itself (by level and number), those whose references
        compute the same or nearly, and those that compute nearly the same as one that was given
        already. So are those for held-out problems, unless the problem is held out itself.

        Raises:
            RetrievalError: if the index has no kernel in that language.
        """
        own, held_out = operations(problem.source), is_held_out(problem)
        given: list[tuple[str, ...]] = [own]
        for likeness, pair in self._ranked(problem, language):
            theirs = operations(pair.reference, pair.entry)
            if _same_task(pair, problem) or any(near_copies(theirs, each) for each in given):
                continue
            if not held_out and _answers_held_out(pair, theirs):
                continue
            given.append(theirs)
            yield Found(pair=pair, likeness=likeness)

    def _ranked(self, problem: Problem, language: Language) -> Iterator[tuple[float, Pair]]:
        with self._lock:
            searcher, rows = self._searcher(language)
            vector = self._vector(module_text(problem.source))
            likenesses, places = searcher.search(vector, len(rows))
        for likeness, place in zip(likenesses[0], places[0], strict=True):
            yield float(likeness), self._index.pairs[rows[place]]

    def _searcher(self, language: Language) -> tuple[Any, "NDArray[np.intp]"]:
        if language not in self._searchers:
            rows = np.flatnonzero([pair.language == language for pair in self._index.pairs])
            if not len(rows):
                there = ", ".join(sorted({pair.language for pair in self._index.pairs}))
                raise RetrievalError(
                    f"the index has no kernels in {language}, only in {there}; add a source that has"
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
    """The retriever of an index on disk; opened once in a process, and anew when it was built anew.

    Raises:
        RetrievalError: if no folder is given, there is no index in it, or the extra is not
            installed.
    """
    if not folder:
        raise RetrievalError(
            f"examples are to be retrieved, but no index is given: index=FOLDER. Build one: {BUILD}"
        )
    path = Path(folder).expanduser().resolve()
    header = path / "index.json"
    with _OPENING:
        return _opened(path, header.stat().st_mtime_ns if header.is_file() else 0)


@functools.lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> Retriever:
    index = load(path)
    return Retriever(index, make_embedder(index.model))


def _answers_held_out(pair: Pair, theirs: tuple[str, ...]) -> bool:
    """Whether a pair is for a held-out problem: as its level and number tell, else as its
    operations do.
    """
    ours = next((each for each in _ours() if _same_task(pair, each)), None)
    if ours is not None:
        return is_held_out(ours)
    return any(
        near_copies(theirs, operations(each.source)) for each in _ours() if is_held_out(each)
    )


@functools.cache
def _ours() -> tuple[Problem, ...]:
    return our_problems()


def _same_task(pair: Pair, problem: Problem) -> bool:
    """Whether the pair is for this very problem: ours up to level 3 are KernelBench's, by level and
    number.
    """
    if pair.level is None or (pair.level, pair.number) != (problem.level, problem.number):
        return False
    return pair.origin == "solutions" or pair.level <= _KERNELBENCH_LEVELS


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise RetrievalError(f"examples are retrieved by FAISS: {INSTALL}") from error
    return faiss
