"""Lints problems, a few at a time, and tells of each in the order given."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kevin_env.app.errors import JUDGE_FAILED
from kevin_env.app.screen import show, shown
from kevin_env.judge.api import JudgeError, Options
from kevin_env.judge.lint.report import LintReport
from kevin_env.outcome import printable
from kevin_env.problem import Problem

UNFIT = 1
"""The exit code of a lint that found something."""


class Linter(Protocol):
    """What lints problems, as `kevin_env.judge.pool.LocalPool` does."""

    def lint(self, problem: Problem, options: Options) -> Future[LintReport]:
        """Begins the lint of a problem."""
        ...


@dataclass(frozen=True, slots=True)
class Linted:
    """What came of one problem; `report` is None where the judge itself failed."""

    problem: Problem
    report: LintReport | None
    error: str = ""

    def row(self) -> dict[str, Any]:
        """The object of `problems lint --json`."""
        if self.report is None:
            return {"id": self.problem.id, "error": self.error}
        report = self.report.model_dump(mode="json")
        return {"id": report.pop("problem"), "ok": self.report.ok, "path": self.problem.path, **report}


def lint(problems: Sequence[Problem], linter: Linter, options: Options, console: Console) -> Iterator[Linted]:
    """Lints them one after the other, so that none disturbs the times of another; `console` shows how far it is."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(problems))
        for problem in problems:
            progress.update(task, description=printable(problem.id))
            yield _lint(problem, linter, options)
            progress.advance(task)


def show_lint(console: Console, linted: Sequence[Linted]) -> None:
    """One row a problem, then what is wrong with each, then totals."""
    console.print(_table(linted))
    for each in linted:
        for finding in each.report.findings if each.report else ():
            show(console, f"{each.problem.id}: {finding.check}: {finding.message}", "yellow")
        if each.report is None:
            show(console, f"{each.problem.id}: the judge failed: {each.error}", "bold red")
    show(console, totals(linted))


def totals(linted: Sequence[Linted]) -> str:
    """One line: how many are fit, accept their own reference, and accept a trivial answer."""
    reports = [each.report for each in linted if each.report]
    return (
        f"{len(linted)} problems: {sum(report.ok for report in reports)} fit; own reference accepted by "
        f"{sum(report.reference == 'accepted' for report in reports)}; a trivial answer accepted by "
        f"{sum(bool(report.accepted) for report in reports)}, and on their own inputs alone by "
        f"{sum(bool(report.accepted_as_shipped) for report in reports)}"
    )


def exit_code(linted: Sequence[Linted]) -> int:
    """0 when every problem is fit, 1 when one is not, 3 when the judge itself failed for one."""
    if any(each.report is None for each in linted):
        return JUDGE_FAILED
    return 0 if all(each.report.ok for each in linted if each.report) else UNFIT


def _lint(problem: Problem, linter: Linter, options: Options) -> Linted:
    try:
        return Linted(problem, linter.lint(problem, options).result())
    except JudgeError as error:
        return Linted(problem, None, printable(str(error)))


def _table(linted: Sequence[Linted]) -> Table:
    table = Table("problem", "fit", "reference", "accepted answers", "as shipped")
    for heading in ("seconds", "MB moved", "GFLOP"):
        table.add_column(heading, justify="right")
    for each in linted:
        report = each.report
        if report is None:
            table.add_row(shown(each.problem.id), shown("judge failed", "bold red"))
            continue
        cost = report.cost
        table.add_row(
            shown(each.problem.id),
            shown("yes", "green") if report.ok else shown("no", "yellow"),
            shown(report.reference),
            shown(", ".join(report.accepted)),
            shown(", ".join(report.accepted_as_shipped)),
            *((f"{cost.seconds:.2g}", f"{cost.moved_bytes / 1e6:.3g}", f"{cost.flops / 1e9:.3g}") if cost else ()),
        )
    return table
