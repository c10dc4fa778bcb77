"""Builds a retrieval index, and queries it for a problem."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from kevin_env.app.screen import progress_of, show, shown
from kevin_env.languages import Name
from kevin_env.problem import Problem
from kevin_env.retrieval.embedders import make_embedder
from kevin_env.retrieval.index import Found, Kept, build, keep, open_retriever, save
from kevin_env.retrieval.operations import Pair
from kevin_env.retrieval.sources import read_source


def build_index(
    sources: Sequence[str], out: Path, model: str, device: str, errors: Console
) -> Kept:
    """Reads the sources, embeds their references and writes the index.

    Raises:
        RetrievalError: if a source, the model or the folder cannot be used.
    """
    kept = keep(pair for source in sources for pair in read_source(source))
    embedder = make_embedder(model, device)
    with progress_of(errors) as progress:
        task = progress.add_task("references")
        index = build(
            kept.pairs,
            embedder,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    save(index, out)
    return kept


def counted(pairs: Sequence[Pair]) -> dict[str, int]:
    """The number of pairs per origin and language, such as `archive cuda`."""
    return dict(Counter(f"{pair.origin} {pair.language}" for pair in pairs))


def show_built(console: Console, kept: Kept, out: Path) -> None:
    """Prints what the index holds, and what was left out."""
    inside = ", ".join(f"{number:,} {words}" for words, number in counted(kept.pairs).items())
    show(console, f"indexed {len(kept.pairs):,} pairs in {out}: {inside}")
    for reason, number in kept.left_out.items():
        show(console, f"left out {number:,}: {reason}")


def query_index(folder: Path, problem: Problem, language: Name, most: int) -> list[Found]:
    """The pairs that a prompt for the problem would be offered, the most similar first.

    Raises:
        RetrievalError: if the index cannot be used.
    """
    return list(islice(open_retriever(str(folder)).find(problem, language), most))


def found_row(found: Found) -> dict[str, Any]:
    """The pair's fields and its similarity, for JSON."""
    return found.pair.model_dump(mode="json") | {"similarity": found.similarity}


def show_found(console: Console, results: Sequence[Found]) -> None:
    """Prints a row per pair; `--json` has the kernels."""
    names = ("similarity", "pair", "language", "module", "speedup")
    table = Table(*names, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for found in results:
        speedup = "" if found.pair.speedup is None else f"{found.pair.speedup:.2f}x"
        table.add_row(
            f"{found.similarity:.3f}",
            shown(found.pair.id),
            found.pair.language,
            shown(found.pair.entry),
            speedup,
        )
    console.print(table)
