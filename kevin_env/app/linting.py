"""Lints problems, one at a time per device."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table

from kevin_env.app.errors import JUDGE_FAILED
from kevin_env.app.screen import counted, progress_of, show, shown
from kevin_env.judge.api import JudgeError, Options, device_names
from kevin_env.lint.report import LintReport
from kevin_env.outcome import printable
from kevin_env.pools.local import REST
from kevin_env.problem import Problem

UNFIT = 1
"""Exit code: a problem has findings."""


class Linter(Protocol):
    """Lints problems, as `kevin_env.pools.local.LocalPool` does."""

    def lint(self, problem: Problem, options: Options) -> Future[LintReport]:
        """Starts to lint a problem."""
        ...


@dataclass(frozen=True, slots=True)
class Linted:
    """A linted problem; `report` is None if the judge failed."""

    problem: Problem
    report: LintReport | None
    error: str = ""

    def row(self) -> dict[str, Any]:
        """The object of `problems lint --json`."""
        if self.report is None:
            return {"id": self.problem.id, "error": self.error}
        report = self.report.model_dump(mode="json")
        known = {"id": report.pop("problem"), "ok": self.report.ok, "path": self.problem.path}
        return known | report


def lint(
    problems: Sequence[Problem],
    linter: Linter,
    options: Options,
    console: Console,
    until: float = math.inf,
) -> Iterator[Linted]:
    """Lints problems, one at a time per device, so that they do not disturb each other's timing.

    `options.device` may name several. Problems that have not started at `until`, by
    `time.monotonic`, are skipped. Yields results in the order in which they finish.
    """
    with progress_of(console) as progress:
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
    """As `lint`; calls `tell` with the names of running problems."""
    waiting, under_way = deque(problems), dict[Future[LintReport], tuple[Problem, str]]()
    free = dict.fromkeys(device_names(options.device), -math.inf)
    while True:
        while (
            waiting
            and (now := time.monotonic()) < until
            and (device := _next(free, now, bool(under_way)))
        ):
            del free[device]
            problem, chosen = waiting.popleft(), options.model_copy(update={"device": device})
            under_way[linter.lint(problem, chosen)] = problem, device
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
    """The free device with the earliest start time; None if there is none.

    A device whose judge fails is free again at once and would consume every problem, so it rests
    while others are busy.
    """
    device = min(free, key=free.__getitem__, default=None)
    return None if device is None or (busy and free[device] > now) else device


def show_lint(console: Console, linted: Sequence[Linted]) -> None:
    """Prints a row per problem, then all findings, then totals."""
    console.print(_table(linted))
    for each in linted:
        for finding in each.report.findings if each.report else ():
            show(console, f"{each.problem.id}: {finding.check}: {finding.message}", "yellow")
        if each.report is None:
            show(console, f"{each.problem.id}: the judge failed: {each.error}", "bold red")
    reports = [each.report for each in linted if each.report]
    fit = sum(report.ok for report in reports)
    references = sum(report.reference == "accepted" for report in reports)
    trivial = sum(bool(report.accepted) for report in reports)
    shipped = sum(bool(report.accepted_as_shipped) for report in reports)
    show(
        console,
        f"{counted(len(linted), 'problem')}: {fit} fit; own reference accepted: {references}; "
        f"a trivial answer accepted: {trivial}, on their own inputs alone: {shipped}",
    )


def exit_code(linted: Sequence[Linted]) -> int:
    """0 if every problem is fit, 1 if any is not, 3 if the judge failed for any."""
    if any(each.report is None for each in linted):
        return JUDGE_FAILED
    return 0 if all(each.report.ok for each in linted if each.report) else UNFIT


def _linted(problem: Problem, done: Future[LintReport]) -> Linted:
    try:
        return Linted(problem, done.result())
    except JudgeError as error:
        return Linted(problem, None, printable(str(error)))


def _table(linted: Sequence[Linted]) -> Table:
    table = Table(
        "problem", "fit", "reference", "accepted answers", "on its own inputs",
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
    )  # fmt: skip
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
