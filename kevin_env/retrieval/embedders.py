"""Embeddings of references: by a sentence-transformers model, or by hashed words without one."""

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kevin_env.hub import cache_if_offline
from kevin_env.parsing import UNREADABLE, parse
from kevin_env.retrieval.operations import RetrievalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
"""Model of kernel-rl's retriever, which embeds a task on the CPU in a fraction of a second."""

TOKEN_HASH = "token-hash"
"""The name of `TokenHashEmbedder`, in place of a model's."""

INSTALL = "pip install 'kevin-env[retrieval]'"

_MOST = 8000
"""Limit of an embedded text in characters, as in kernel-rl; models cut it at their own limit."""

_NOT_THE_MODULE = {"get_inputs", "get_init_inputs"}


class Embedder(Protocol):
    """Turns texts into vectors whose inner product is their similarity."""

    name: str
    """The name from which `make_embedder` recreates it."""

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """float32[len(texts), dimension], rows of length 1."""
        ...


class TokenHashEmbedder:
    """Counts words at hashed positions, the same in every process."""

    name = TOKEN_HASH

    def __init__(self, dimension: int = 512) -> None:
        self._dimension = dimension

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Embedder`."""
        counts = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"[A-Za-z]+|\d+", text.lower()):
                place = int.from_bytes(
                    hashlib.blake2b(word.encode(), digest_size=8).digest(), "little"
                )
                counts[row, place % self._dimension] += 1 if place >> 63 else -1
        counts = np.sign(counts) * np.sqrt(np.abs(counts))  # frequent words count less
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-12)


class SentenceEmbedder:
    """A sentence-transformers model. Python code that comes with it is not run.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        device: such as `"cpu"` or `"cuda"`. On the judge's GPU it would take memory from the
            kernels.

    Raises:
        RetrievalError: if the extra is not installed, or the model cannot be loaded.
    """

    def __init__(self, model: str, device: str = "cpu") -> None:
        folder = Path(model).expanduser()
        if model.startswith((".", "~", os.sep)) and not folder.is_dir():
            raise RetrievalError(
                f"{model} is not a folder; "
                "give a model's folder, or its name on the Hugging Face Hub"
            )
        self.name = str(folder.resolve()) if folder.is_dir() else model
        with _without_progress():
            self._model = _load(self.name, device)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Embedder`."""
        vectors = self._model.encode(
            list(texts),
            batch_size=32,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32)


def make_embedder(name: str, device: str = "cpu") -> Embedder:
    """The embedder of that name: `token-hash`, a folder, or a name on the Hugging Face Hub.

    Raises:
        RetrievalError: if the extra is not installed, or the model cannot be loaded.
    """
    return TokenHashEmbedder() if name == TOKEN_HASH else SentenceEmbedder(name, device)


@functools.lru_cache(maxsize=65_536)
def module_text(reference: str) -> str:
    """The classes and functions of a reference, without comments, docstrings, sizes and inputs.

    Raises:
        RetrievalError: if it does not parse, or is nested too deeply.
    """
    try:
        kept = [
            node
            for node in parse(reference).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in _NOT_THE_MODULE
        ]
        for node in (inner for outer in kept for inner in ast.walk(outer)):
            if (
                isinstance(node, ast.ClassDef | ast.FunctionDef)
                and ast.get_docstring(node, clean=False) is not None
            ):
                node.body = node.body[1:] or [ast.Pass()]
        return "\n\n".join(map(ast.unparse, kept))[:_MOST]
    except UNREADABLE as error:
        raise RetrievalError(f"a reference cannot be read: {type(error).__name__}") from error


@contextmanager
def _without_progress() -> Iterator[None]:
    """Disables the progress bar of transformers, which would disturb a screen."""
    try:
        from transformers.utils import logging
    except ImportError:  # `_load` raises the error
        yield
        return
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _load(model: str, device: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise RetrievalError(
            f"an index of embeddings needs sentence-transformers: {INSTALL}"
        ) from error
    try:
        with cache_if_offline():
            return SentenceTransformer(model, device=device, trust_remote_code=False)
    except Exception as error:  # another package, the network and a cache may raise anything
        raise RetrievalError(
            f"cannot load the embedding model {model} ({type(error).__name__}: {error}); "
            "give --model a folder that holds one, or token-hash, which needs none"
        ) from error
