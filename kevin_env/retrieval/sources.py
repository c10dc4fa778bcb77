"""Sources of pairs: our own solutions, KernelBook, and the archive of the AI CUDA Engineer.

Collections are read from parquet files with pyarrow, or from the Hugging Face Hub with `datasets`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kevin_env.hub import cache_if_offline
from kevin_env.languages import Name
from kevin_env.problem import data_folder, list_problems, shown_source
from kevin_env.retrieval.embedders import INSTALL
from kevin_env.retrieval.operations import Pair, RetrievalError

Row = Mapping[str, Any]

IMPLAUSIBLE = 10.0
"""Speedup from which kernels of the archive are excluded, since its harness was exploited."""

_LANGUAGES: tuple[Name, ...] = ("triton", "cuda", "cpp")


@dataclass(frozen=True)
class Collection:
    """A data set of the Hub: its splits, and the columns that are read, in this order."""

    name: str
    splits: tuple[str, ...]
    columns: tuple[str, ...]


KERNELBOOK = Collection(
    "GPUMODE/KernelBook", ("train",), ("python_code", "triton_code", "entry_point")
)
"""PyTorch modules from public repositories, and their Triton code by torch.compile."""

ARCHIVE = Collection(
    "SakanaAI/AI-CUDA-Engineer-Archive",
    ("level_1", "level_2", "level_3"),
    (
        *("Level_ID", "Task_ID", "Kernel_Name", "PyTorch_Code_Module", "CUDA_Code"),
        *("Correct", "CUDA_Speedup_Native"),
    ),
)
"""Generated CUDA kernels for KernelBench's levels 1 to 3, only those marked as correct."""


def read_source(source: str) -> Iterator[Pair]:
    """The pairs of one source.

    Args:
        source: `solutions` (our own), `kernelbook` or `archive` (from the Hub), or one of the last
            two with a parquet file or a folder of them, as in `kernelbook:FILE`.

    Raises:
        RetrievalError: if there is no such source, file or column, or a package is missing.
    """
    name, _, place = source.partition(":")
    if source == "solutions":
        return _solutions()
    if name == "kernelbook":
        return _kernelbook(_rows(KERNELBOOK, place))
    if name == "archive":
        return _archive(_rows(ARCHIVE, place))
    raise RetrievalError(
        f"unknown source {source!r}: give solutions, kernelbook, archive, kernelbook:PARQUET "
        "or archive:PARQUET"
    )


def _solutions() -> Iterator[Pair]:
    folder = data_folder("problems") / "solutions"
    for problem in list_problems():
        for language in _LANGUAGES:
            path = folder / f"{problem.id}.{language}.py"
            if path.is_file():
                yield Pair(
                    id=f"{problem.id}.{language}",
                    origin="solutions",
                    language=language,
                    reference=shown_source(problem),
                    kernel=path.read_text(encoding="utf-8"),
                    level=problem.level,
                    number=problem.number,
                )


def _kernelbook(rows: Iterator[Row]) -> Iterator[Pair]:
    for number, row in enumerate(rows):
        reference, kernel, entry = (row[column] for column in KERNELBOOK.columns)
        if reference and kernel:
            yield Pair(
                id=f"kernelbook:{number}",
                origin="kernelbook",
                language="triton",
                reference=reference,
                kernel=kernel,
                entry=entry or "Model",
            )


def _archive(rows: Iterator[Row]) -> Iterator[Pair]:
    for row in rows:
        level, number, name, reference, kernel, correct, speedup = (
            row[column] for column in ARCHIVE.columns
        )
        if reference and kernel and correct and (speedup or 0) < IMPLAUSIBLE:
            yield Pair(
                id=f"archive:L{level}_{number}/{name}",
                origin="archive",
                language="cuda",
                reference=reference,
                kernel=kernel,
                level=level,
                number=number,
                speedup=speedup,
            )


def _rows(collection: Collection, place: str) -> Iterator[Row]:
    return _from_parquet(collection, Path(place)) if place else _from_hub(collection)


def _from_parquet(collection: Collection, place: Path) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise RetrievalError(f"reading parquet files needs pyarrow: {INSTALL}") from error
    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        raise RetrievalError(
            f"there is no parquet file at {place}; download it from the data set {collection.name}"
        )
    for file in files:
        try:
            opened = parquet.ParquetFile(file)
            _require_columns(collection, opened.schema_arrow.names, str(file))
            for batch in opened.iter_batches(columns=list(collection.columns)):
                yield from batch.to_pylist()
        except (pyarrow.ArrowException, OSError) as error:
            raise RetrievalError(f"cannot read {file} as parquet: {error}") from error


def _from_hub(collection: Collection) -> Iterator[Row]:
    remedy = "download its parquet files and give them, as in kernelbook:FILE"
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise RetrievalError(
            f"loading {collection.name} needs `pip install datasets`; or {remedy}"
        ) from error
    for split in collection.splits:
        try:
            with cache_if_offline():
                rows: Any = datasets.load_dataset(collection.name, split=split)
        except Exception as error:  # another package, the network and a cache may raise anything
            raise RetrievalError(
                f"{collection.name} could not be loaded ({type(error).__name__}: {error}); {remedy}"
            ) from error
        _require_columns(collection, rows.column_names, collection.name)
        yield from rows.select_columns(list(collection.columns))


def _require_columns(collection: Collection, available: list[str], where: str) -> None:
    missing = [column for column in collection.columns if column not in available]
    if missing:
        raise RetrievalError(
            f"{where} has no column {', '.join(missing)}; is it {collection.name}?"
        )
