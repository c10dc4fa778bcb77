"""Lints problems, one at a time on each device, and tells of each when it is done."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kevin_env.app.errors import JUDGE_FAILED
from kevin_env.app.screen import show, shown
from kevin_env.judge.api import JudgeError, Options
from kevin_env.judge.choice import REST, device_names
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
        return {
            "id": report.pop("problem"),
            "ok": self.report.ok,
            "path": self.problem.path,
            **report,
        }


def lint(
    problems: Sequence[Problem],
    linter: Linter,
    options: Options,
    console: Console,
    until: float = math.inf,
) -> Iterator[Linted]:
    """Lints them, one at a time on each device of `options.device`, so that none disturbs the times
    of another.

    Gives each when it is done, so from several devices in another order than theirs.

    Args:
        problems: What is linted.
        linter: What lints them.
        options: Of the lint.
        console: Shows how far it is.
        until: By `time.monotonic`; none is begun later, and those that have not begun are left out.
    """
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(problems))

        def tell(names: str) -> None:
            progress.update(task, description=printable(names))

        for linted in _spread(problems, linter, options, until, tell):
            progress.advance(task)
            yield linted


def _spread(
    problems: Sequence[Problem],
    linter: Linter,
    options: Options,
    until: float,
    tell: Callable[[str], None],
) -> Iterator[Linted]:
    """As `lint`; tells what is under way."""
    waiting, under_way = deque(problems), dict[Future[LintReport], tuple[Problem, str]]()
    free = dict.fromkeys(device_names(options.device), -math.inf)
    while True:
        while (
            waiting
            and (now := time.monotonic()) < until
            and (device := _next(free, now, bool(under_way)))
        ):
            del free[device]
            problem = waiting.popleft()
            under_way[linter.lint(problem, options.model_copy(update={"device": device}))] = (
                problem,
                device,
            )
        if not under_way:
            return
        tell(", ".join(problem.id for problem, _ in under_way.values()))
        wait(under_way, return_when=FIRST_COMPLETED)
        for future in [each for each in under_way if each.done()]:
            problem, device = under_way.pop(future)
            linted = _linted(problem, future)
            free[device] = -math.inf if linted.report else time.monotonic() + REST
            yield linted


def _next(free: dict[str, float], now: float, busy: bool) -> str | None:
    """The free device that may begin first, by the time of each; None if there is none.

    One whose judge failed is soon free again, and would take every problem: it rests while others
    are busy.
    """
    device = min(free, key=free.__getitem__, default=None)
    return None if device is None or (busy and free[device] > now) else device


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


def _linted(problem: Problem, done: Future[LintReport]) -> Linted:
    try:
        return Linted(problem, done.result())
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
            *(
                (f"{cost.seconds:.2g}", f"{cost.moved_bytes / 1e6:.3g}", f"{cost.flops / 1e9:.3g}")
                if cost
                else ()
            ),
        )
    return table
