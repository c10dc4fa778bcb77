"""Judges a run of KernelBench again, and compares the verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kevin_env.app.kernelbench_run import read_samples
from kevin_env.app.rejudge.comparison import (
    HEADINGS,
    agreement_of,
    comparison,
    comparison_markdown,
    tables,
)
from kevin_env.app.rejudge.run import Kernel, Terms, judge_kernels, read_kernels
from kevin_env.app.screen import show
from kevin_env.app.writing import write_text
from kevin_env.judge.api import JudgePool, Options

RECORD, REPORT = "kevin_verdicts.jsonl", "kevin_report.md"


@dataclass(frozen=True, slots=True)
class Report:
    """All kernels of a run with both verdicts, and what ours hold for."""

    run: str
    terms: Terms
    kernels: Sequence[Kernel]

    @property
    def unjudged(self) -> int:
        """How many kernels have no verdict of ours."""
        return sum(kernel.entry is None for kernel in self.kernels)

    def row(self) -> dict[str, Any]:
        """The object of `judge --kernelbench-run --json`."""
        return {"run": self.run, **self.terms.model_dump(), **comparison(self.kernels)}

    def print(self, console: Console) -> None:
        """Prints the tables."""
        for table in tables(self.kernels):
            console.print(table)

    def write(self, folder: Path) -> Path:
        """Writes the report as Markdown to a folder and returns its path.

        Raises:
            BadInput: if it cannot be written.
        """
        facts = [f"{name}: {value}" for name, value in self.terms.model_dump().items()]
        write_text(
            folder / REPORT, comparison_markdown(f"KernelBench run {self.run}", facts, self.kernels)
        )
        return folder / REPORT


def read_run(folder: Path, console: Console) -> list[Kernel]:
    """The kernels of a run folder as KernelBench writes it, with their problems; `console` shows
    what is left out.

    Raises:
        BadInput: if the folder has no kernels, or cannot be read.
        ProblemError: if KernelBench's problems are not there.
    """
    return read_kernels(read_samples(folder, lambda line: show(console, line, "yellow")))


def rejudge(
    kernels: Sequence[Kernel],
    out: Path,
    pool: JudgePool,
    options: Options,
    terms: Terms,
    console: Console,
) -> list[Kernel]:
    """Judges the kernels that have no verdict in `out` yet, and shows progress; gives all of them
    in the same order.

    Args:
        kernels: As `read_run` gives them.
        out: Folder where verdicts are kept; made if missing.
        pool: Judges the kernels.
        options: How to judge, in agreement with `terms`.
        terms: What the verdicts hold for.
        console: Shows progress.

    Raises:
        OSError: if `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(kernels))

        def done(kernel: Kernel) -> None:
            line = f"{kernel.sample.file.name}: {_ending(kernel)}"
            progress.update(task, advance=1, description=line)
            if not console.is_terminal:
                show(console, line)

        return judge_kernels(kernels, pool, options, terms, out / RECORD, done)


def _ending(kernel: Kernel) -> str:
    ours = kernel.entry.outcome if kernel.entry else None
    verdict = f"{ours.category}/{ours.kind}" if ours else kernel.error
    return f"{verdict} ({HEADINGS[agreement_of(kernel)]})"
